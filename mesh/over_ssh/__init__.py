"""A Dask cluster for one mesh on hosts that ssh reaches. Public: `ssh_cluster` (`start_ssh_cluster`).

Within: `ssh_process` (a scheduler or worker, seen from here) and `dask_process` (what runs on the host).
"""
