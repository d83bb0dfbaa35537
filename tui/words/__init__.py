"""The numbers, sentences and tables that several rooms show, and the parsing of what the user types. Pure.

`numbers` has every format of a number, `parsing` the other direction. A finished run: `summary`,
`datagram_results`, `responsiveness`, `iperf3`, `plan`, `event_lines`; many runs: `run_list`, `comparison`. Import
modules by name, `from ..words import numbers`, and write `numbers.rate(...)`.
"""
