"""This host and process: CPU, network interface, TCP_INFO, kernel limits, event loop.

Imports engine/model and engine/protocol; Linux's own interfaces, and None where a system has no such thing. Each
module reads one source: `cpu`, `nic`, `nic_counters`, `tcp_info`, `tcp_sysctls`; `description` combines them. The
others are tools: `event_loop`, `blocking_calls`, `core_affinity`, `process_identity`, `memory_archive`.
"""
