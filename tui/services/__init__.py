"""What the app and the command line do with the engine: run a test, store, load, export and compare runs.

It may import tui.state and tui.text, presets and engine, but neither Textual nor Rich. Public names, by module:
run_session `open_run_session`, `RunSession`, `Outcome`; run_log_access; stored_run `load_stored_run`;
run_comparison; sweeps `SweepRequest`, `run_points`; exports; preset_choice; user_presets; preferences; config;
credentials `with_access`; known_peers; far_end_keeper. Import the module: this package loads none of them.
"""
