"""Worker processes, which host the sessions of an end, and the fork server that starts them.

May import model, protocol (types of messages), metering, host and workloads. Public: pool.WorkerPool,
fork_client.ForkServerLease, core_assignment, commands and events in ipc; worker and fork_server are processes.
"""
