"""Meshes on the screen: `mesh_screen` (MeshScreen).

It imports the screen of a stored run, the dialogs and the widgets. The history opens a stored mesh by
`open_stored_mesh`; `linkgauge mesh` shows one in progress.
"""
