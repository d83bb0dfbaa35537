"""Reports: runs (`run_page`) and sweeps (`sweep_page`) as HTML pages that load nothing else.

May import the features, `tui.session`, `tui.words` and what lies below; neither Textual nor the command line.
Public: `run_page.write_run_report`, `sweep_page.write_sweep_report`, `html.check_report_path`.
"""
