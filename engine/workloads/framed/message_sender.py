"""The sender of a stream of messages: each block is one, of a WebSocket (RFC 6455, 5.2) or a request of HTTP.

The head of a message is part of the block, so the kernel sends it with the payload: 10 bytes in 256 KiB to a page.
Its reader would lose its place in the stream if a block began again in its middle, so the rest of a block always
follows.
"""

import os
import socket

from ..session import SessionContext, WorkerResources
from ..stream import StreamSender


class MessageSender(StreamSender):
    """Sends the same message repeatedly, by copy or by sendfile. You must not limit its rate or its bytes."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._sent_of_block = 0
        self._block = memoryview(b"" if resources.payload.fd >= 0 else resources.payload.block)
        self._send = self._send_rest

    def _send_rest(self) -> int:
        """Send the rest of a message, or a whole one; return how many bytes the kernel took."""
        payload, start = self._payload, self._sent_of_block
        if payload.fd >= 0:
            sent = os.sendfile(self._fd, payload.fd, start, payload.size_bytes - start)
        else:
            sent = self._sock.send(self._block[start:])
        self._sent_of_block = (start + sent) % payload.size_bytes
        return sent
