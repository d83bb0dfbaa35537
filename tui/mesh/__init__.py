"""Meshes, carried out with their runs in the run log, judged, stored, resumed, and shown.

`mesh_spec` is the request, `mesh_session` a mesh in progress, `cell_recorder` makes the result of a cell,
`stored_mesh` has the meshes on disk. The user reads `mesh_values`, `cell_marks` and `mesh_sentences`;
`mesh_screen` is the screen.
"""
