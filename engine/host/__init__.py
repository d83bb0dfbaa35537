"""This host and process: CPU, network interface, TCP_INFO, kernel limits, event loop.

Imports engine/model and engine/protocol. Reads Linux's own interfaces; on other systems what they lack is None.
`cpu`, `nic` and `tcp_info` read one source each, and `description` combines them. `process_identity` and
`machine_measurements` tell processes and machines apart. The others are tools: `event_loop`, `happy_eyeballs`,
`memory_file`, `saved_files`, `background_writer`, `debug_log`, `child_process`, `end_signals`.
"""
