"""A run from the request to the stored result, for the commands and the app alike. Neither Textual nor Rich.

`run_spec` is the request, `run_session` the run in progress, `run_recorder` and `stored_run` its record,
`storage` and `pruning` the run log, `run_exports` the files made of it. `credentials`, `preferences`
and `user_presets` belong to the user. Import the module: this package loads none.
"""
