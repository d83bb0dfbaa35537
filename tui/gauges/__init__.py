"""The instruments of a run, live or stored: gauges, panels and header; `instruments` gives each its values."""
