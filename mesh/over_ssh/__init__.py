"""A mesh on hosts that ssh reaches. Public: `ssh_mesh` (open_ssh_mesh), `ssh_cluster` (start_ssh_cluster).

Within: `ssh_process` (a scheduler or worker, at this end of ssh), `dask_process` (the program on the host).
"""
