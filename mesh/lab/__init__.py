"""A mesh on emulated hosts of this machine. Public: `mesh_lab` (open_mesh_lab, MeshLab).

Its `mesh_keeper` joins the hosts of engine/lab with switches, and runs a `dask_cluster` on them.
"""
