"""Results as Rich tables and text for a terminal, and as JSON documents where the command needs one.

May import `tui/words`, `presets`, `engine/model`, `engine/results` and Rich; prints nothing. Public: `summary`
(summary_parts, findings_part), `runs` (run_list, comparison_parts), `sweep` (sweep_parts).
"""
