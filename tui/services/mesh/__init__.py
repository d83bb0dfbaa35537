"""Meshes: carried out with their runs in the run log, judged, stored and resumed.

`session` is a mesh in progress, `cell_recorder` makes the result of a cell from the events of its run, and
`stored_mesh` has the definitions and the results so far.
"""

from .session import MeshSession, MeshUpdate

__all__ = ["MeshSession", "MeshUpdate"]
