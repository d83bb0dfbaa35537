"""Widgets of stored runs, comparisons and sweeps.

May import tui.rendering, tui.state, tui.text and tui.widgets.common. Public: run_table (RunTable, RunList),
run_detail (RunDetail), overlay_plot (OverlayPlot, OverlayLine), sweep_map.
"""
