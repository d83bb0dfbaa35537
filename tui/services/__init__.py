"""What the app and the command line do with the engine: run a test, store, load, export and compare runs.

It may import tui.state and tui.text, presets and engine, but neither Textual nor Rich. Public names, by module:
run_spec `RunSpec`; run_session `open_run_session`, `RunSession`; stored_run `load_stored_run`,
`compare_stored_runs`, `export_runs`; sweeps `SweepRequest`, `run_points`; storage `data_dir`, `config_dir`,
`open_run_log`; credentials `with_access`; preset_choice; pruning; user_presets; preferences; known_peers;
far_end_keeper. Import the module: this package loads none.
"""
