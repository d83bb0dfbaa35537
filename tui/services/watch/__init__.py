"""A watch carried out: its file, its session, its tests and probes, and whom it tells of changes.

Public: `watch_file` (a WatchPlan from TOML).
"""
