"""This host and process: CPU, network interface, TCP_INFO, kernel limits, event loop.

Imports engine/model and engine/protocol; Linux's own interfaces, and None where a system has no such thing. `cpu`,
`cpu`, `nic` and `tcp_info` read one source each, and `description` combines them. `process_identity` and
`machine` tell processes and machines apart. The others are tools: `event_loop`, `happy_eyeballs`, `files`,
`saved_files`, `background_writer`, `debug_log`, `child_process`.
"""
