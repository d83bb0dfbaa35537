"""Widgets of the endpoint's screen.

May import tui.rendering, tui.state and tui.text. Public: endpoint_header (EndpointHeader), endpoint_gauge
(EndpointGauge), client_table (ClientTable), limits_panel (LimitsPanel), endpoint_log_view (EndpointLogView).
"""
