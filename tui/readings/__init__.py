"""What the gauges, plots and panels of a run show, as values; neither Textual nor Rich.

`live_readings` is a view over the meter of a run, `cockpit_snapshot` is all that the screen shows at one moment.
`flow_reading`, `latency_reading` and `cpu_reading` make of it the values of gauges and panels; `plot_values` are
those of plots, `setting_steps` the steps of the keys.
"""
