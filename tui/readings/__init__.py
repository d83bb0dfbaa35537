"""What the gauges, plots and panels of a run show, as values; neither Textual nor Rich.

`live_readings` are views over the meter of a run, live or stored; `instrument_values` are the frozen values of
one frame; `plot_axes`, `setting_steps` and `load_step_values` belong to them.
"""
