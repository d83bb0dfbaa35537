"""A mesh as text: `cell_marks` for the map, `mesh_sentences` for people, `mesh_document` for programs. Pure."""
