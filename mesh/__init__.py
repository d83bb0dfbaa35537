"""The mesh: every pair of N hosts measured, on a Dask cluster, and the bad hosts and paths named.

May import presets and the engine. `plan` is the input, `events` are the progress, `figures` are the results.
Only `cluster`, `over_ssh`, `lab` and `host_tasks` know Dask, which is the extra `linkgauge[mesh]`.
"""
