"""The rules of the diagnosis, a module for each field: its measurements, their meaning, its findings.

Each rule yields findings for a `FlowView` and takes the shares that it explains out of its budget. Rules may import
the modules of presets.diagnosis above them but not each other. Public names: link `find_link_limits`, window
`find_window_limits` and `find_remaining_window_limits`, processor `find_processor_limits` and `find_core_limits`,
loss `find_loss_limits`, path `find_path_limits`; presets.diagnosis.diagnose has their order.
"""
