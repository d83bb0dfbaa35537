"""A Dask cluster for one mesh on hosts that ssh reaches. Public: `ssh_cluster` (`start_ssh_cluster`).

Within: `ssh_process` (a scheduler or worker, at this end of ssh), `dask_process` (the program on the host).
"""
