"""A mesh on hosts that ssh reaches. Public: `ssh_mesh` (open_ssh_mesh), `ssh_cluster` (start_ssh_cluster).

Within: `host_login` (a login, with the process that it carries), `dask_process` (the program on the host).
"""
