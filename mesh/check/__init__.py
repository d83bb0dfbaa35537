"""Whether the hosts of a mesh can be used, without a test. Public: `mesh_check` (check_mesh, MeshCheck).

Within: `reached_endpoints` (the function for a host's worker).
"""
