"""The screen of an endpoint: `endpoint_status` (EndpointScreen and the EndpointHandle that it needs).

It imports the dialogs; only the endpoint's app imports it.
"""
