"""What the gauges, plots and panels of a run show, as values; neither Textual nor Rich.

`live_readings` is a view over the meter of a run, `cockpit_snapshot` is all that the screen shows at one moment.
`instrument_values` and `plot_values` are the values of gauges and plots, `setting_steps` the steps of the keys.
"""
