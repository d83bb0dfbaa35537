"""What screens, pages and results say, as text. Pure: neither Rich nor Textual, and no I/O.

`numbers` formats every number, `parsing` reads what the user types, `table` is a table in plain values. A finished
run: `summary`, `datagram_results`, `responsiveness`, `iperf3`, `plan`, `event_lines`; stored runs: `run_line`,
`comparison`. Import modules by name, `from ..words import numbers`, and write `numbers.rate(...)`.
"""
