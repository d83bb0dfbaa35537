"""The commands on saved runs: `runs` (list, show, compare, label, note), `runs_export` and `runs_delete`."""
