"""Runs against servers for speed tests that are not linkgauge's: LibreSpeed and NDT7.

This host is the only end that measures. May import what engine/near may, and engine/near itself.
Public: run (open_speed_run, SpeedRun). Parts of it: `speed_client` (what both protocols share), `librespeed`,
`ndt7`.
"""
