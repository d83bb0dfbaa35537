"""The screen of an endpoint: its values, its widgets and `endpoint_status`. `tui/cli/endpoint` serves."""
