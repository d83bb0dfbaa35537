"""A mesh: the request, the tests of its cells, their verdict, the mesh on disk, and its screen.

`mesh_spec` is the request, `mesh_session` a mesh in progress, `cell_recorder` makes the result of a cell,
`stored_mesh` has the meshes on disk. The screen and the command show `mesh_state`, `mesh_verdict` and `mesh_words`.
"""
