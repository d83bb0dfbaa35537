"""The sessions of a stream that consists of messages, as far as they differ from linkgauge's own.

The other program is the page of a browser, or a server for speed tests. May import the other workloads, model,
protocol, metering and host.
Public: message_sender (MessageSender), frame_receiver (FrameReceiver).
"""
