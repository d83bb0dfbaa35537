"""The receiver of a stream that comes as frames of a WebSocket, with messages between its payload.

Every byte of the connection counts as it arrives, as in every stream. Messages go to the owner of the session.
"""

import socket
import time
from typing import Final

from ...model.errors import RemoteProtocolError
from ...protocol.foreign.websocket_frames import FrameWalker, Message, Opcode
from ..session import SessionContext, WorkerResources
from ..stream import StreamReceiver

_LEAST_PAUSE_S: Final = 0.02  # between texts: more of them would keep the owner busy, and are left out


class FrameReceiver(StreamReceiver):
    """Receives and counts bytes, drops payload, and passes text messages and Close frames on."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._walker = FrameWalker()
        self._on_message = context.on_message
        self._next_text_s = 0.0

    def _receive(self, flags: int) -> int:
        payload_bytes = self._walker.skippable_bytes
        if self._is_discarding and payload_bytes:
            most = min(payload_bytes, len(self._buffer))
            count = self._sock.recv_into(self._buffer, most, socket.MSG_TRUNC | flags)
            self._walker.skip(count)
            return count
        count = self._sock.recv_into(self._buffer, 0, flags)
        try:
            messages = self._walker.walk(self._buffer[:count])
        except RemoteProtocolError as error:
            raise OSError(str(error)) from error
        for message in messages:
            self._pass_on(message)
        return count

    def _pass_on(self, message: Message) -> None:
        now_s = time.monotonic()
        if message.opcode is Opcode.TEXT:
            if now_s < self._next_text_s:
                return
            self._next_text_s = now_s + _LEAST_PAUSE_S
        elif message.opcode is not Opcode.CLOSE:
            return
        self._loop.call_soon_threadsafe(self._on_message, message.opcode, message.data)
