"""Metrics of watches and endpoints for Prometheus: scraped, in a text file, or pushed to a gateway.

Public: `publication` (serves, writes and pushes), `watch_metrics` and `endpoint_metrics` (status -> readings).
Only `exposition` knows prometheus_client, which is the extra `linkgauge[metrics]`.
"""
