"""The sessions of a test with the page of a browser, as far as they differ from linkgauge's own.

A WebSocket (RFC 6455) carries each session. What a page sends counts as it arrives, so StreamReceiver receives it.
May import the other workloads, model, protocol, metering and host.
Public: websocket_sender (WebSocketSender).
"""
