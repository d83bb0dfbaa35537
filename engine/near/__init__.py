"""The near end of a run: it connects to a far end, opens the sessions and yields the run's events.

May import every package of the engine but `lab`. Does not travel to a far end.

Public: `connect` (open_far_end, connect, query_host_info, query_ends, FarEnd), `run` (open_run, Run),
`ceiling_measurement` (measure_ceiling), `ceiling` (load_ceiling). Parts of a run: `session_set`, `run_events`,
`link_checks`.
"""
