"""Widgets of the endpoint's screen.

May import tui.rendering, tui.state and tui.text. Public: client_table (ClientTable), endpoint_panels
(EndpointHeader, EndpointGauge, LimitsPanel, EndpointLogView).
"""
