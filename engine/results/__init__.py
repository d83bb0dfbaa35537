"""The results of runs: intervals, summaries, confidence, comparison, sweeps, and the run log that stores them.

May import engine/model and engine/host, but no asyncio; does not travel to a far end. Public: `meter` (Meter,
replay), `summary`, `run_log` (RunLog), `csv_export`, `json_document`, `comparison` (compare), `confidence`,
`sweep`, `saturation`, `ceiling`. Within: `sums` (over samples), `counter_sums`,
`run_totals`, `sample_merging`; `udp` has the sums of datagrams.
"""
