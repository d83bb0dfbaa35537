"""Meshes: carried out with their runs in the run log, judged, stored and resumed.

`spec` is what a mesh is asked to be, `session` is a mesh in progress, `cell_recorder` makes the result of a
cell from the events of its run, and `stored_mesh` has the meshes on disk and their results so far.
"""
