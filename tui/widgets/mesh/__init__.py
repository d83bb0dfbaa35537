"""Widgets of a mesh: the heat map of its cells, and what is known of the cell at the cursor.

May import tui.rendering, tui.state, tui.text and tui.widgets.common. Public: map_layout (Density, MapLayout),
heat_map (HeatMap), mesh_lines (the lines of the panels).
"""
