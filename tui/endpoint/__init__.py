"""An endpoint: its set-up, its clients of iperf3, its metrics, its screen. `tui/cli/runners` carries it out.

The endpoint in one file has all of it but the screen: `endpoint_setup`, `endpoint_log`, `endpoint_publication`,
`iperf3_service`, `iperf3_output` and `key_file` know neither Textual nor Rich.
"""
