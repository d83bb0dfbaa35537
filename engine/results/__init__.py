"""The results of runs: intervals, summaries, confidence, comparison, sweeps, and the run log that stores them.

May import engine/model and engine/host, but no asyncio; does not travel to a far end. Public: `meter` (Meter,
replay), `summary`, `run_result` (RunResult) with `measured_result`, `figure_codec` (encode, decode), `run_log`
(RunLog), `csv_export`, `comparison` (compare), `confidence`, `sweep`. Within: `sums` (over samples),
`rate_and_loss`, `run_totals`, `sample_merging`, `interval_result`; `udp` has the sums of datagrams.
"""
