"""The instruments of a run, live or stored: gauges, panels and header.

`instruments` holds them and gives each its values. `setting_steps` and `load_step_values` are values without a
widget.
"""
