"""The instruments of a run, live or stored: gauges, panels and header; `instruments` lays them out."""
