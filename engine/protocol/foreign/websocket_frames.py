"""The frames of a WebSocket as a server sends them (RFC 6455, 5.2), walked through without a copy of their payload.

Pure. Binary messages are payload: only their lengths are read. Text and control frames are kept and returned.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ...model.errors import RemoteProtocolError

MAX_TEXT_BYTES: Final = 64 * 1024
_MAX_CONTROL_BYTES: Final = 125  # RFC 6455, 5.5
_FIN: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80
_LENGTHS: Final = {126: struct.Struct(">H"), 127: struct.Struct(">Q")}
_MAX_LENGTH: Final = 1 << 63
_MASK: Final = b"link"  # any four bytes: the payload is random anyway


class Opcode(IntEnum):
    """What a frame carries."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10

    @property
    def is_control(self) -> bool:
        """Whether the frame is about the connection itself, and may stand between the parts of a message."""
        return self >= Opcode.CLOSE


@dataclass(frozen=True, slots=True)
class Message:
    """A text message or a control frame."""

    opcode: Opcode
    data: bytes

    @property
    def close_code(self) -> int | None:
        """The code of a Close frame (RFC 6455, 7.4); None without one."""
        return int.from_bytes(self.data[:2]) if self.opcode is Opcode.CLOSE and len(self.data) >= 2 else None


class FrameWalker:
    """Walks through the bytes of a connection after its upgrade, in pieces of any size."""

    def __init__(self) -> None:
        self._head = bytearray()  # of the frame that begins
        self._opcode: Opcode | None = None  # of the frame whose payload follows
        self._is_last = True
        self._left_bytes = 0
        self._message: Opcode | None = None  # of the message whose parts follow
        self._kept = bytearray()
        self._text = bytearray()

    @property
    def skippable_bytes(self) -> int:
        """How many of the next bytes are binary payload, which `skip` may pass over."""
        return self._left_bytes if self._opcode is not None and not self._keeps else 0

    def skip(self, count: int) -> None:
        """Pass over bytes of binary payload, at most `skippable_bytes`."""
        self._left_bytes -= count
        if not self._left_bytes:
            self._end_frame([])

    def walk(self, data: bytes | memoryview) -> list[Message]:
        """Take the next bytes; return the text messages and control frames that are complete now.

        Raises RemoteProtocolError for what a server must not send, and for a text of more than `MAX_TEXT_BYTES`.
        """
        view, at = memoryview(data), 0
        messages: list[Message] = []
        while at < len(view):
            if self._opcode is None:
                at += self._take_head(view[at : at + 10])
            else:
                count = min(self._left_bytes, len(view) - at)
                if self._keeps:
                    self._kept += view[at : at + count]
                self._left_bytes -= count
                at += count
            if self._opcode is not None and not self._left_bytes:
                self._end_frame(messages)
        return messages

    @property
    def _keeps(self) -> bool:
        """Whether the payload of the frame is kept: that of a binary message is not."""
        return self._opcode is not Opcode.BINARY and (
            self._opcode is not Opcode.CONTINUATION or self._message is Opcode.TEXT
        )

    @property
    def _head_bytes(self) -> int:
        """The size of the head that begins, as far as its first bytes tell."""
        if len(self._head) < 2:
            return 2
        length = _LENGTHS.get(self._head[1] & ~_MASKED)
        return 2 if length is None else 2 + length.size

    def _take_head(self, view: memoryview) -> int:
        """Take bytes of a head, and begin its frame once it is complete; return how many were taken."""
        taken = 0
        while taken < len(view) and len(self._head) < self._head_bytes:
            count = min(self._head_bytes - len(self._head), len(view) - taken)
            self._head += view[taken : taken + count]
            taken += count
        if len(self._head) == self._head_bytes:
            self._begin_frame()
        return taken

    def _begin_frame(self) -> None:
        first, second = self._head[:2]
        wide = _LENGTHS.get(second & ~_MASKED)
        length: int = second if wide is None else wide.unpack(self._head[2:])[0]
        self._head.clear()
        if first & _RESERVED or second & _MASKED:
            raise RemoteProtocolError("a frame of a WebSocket that a server must not send")
        if length >= _MAX_LENGTH:
            raise RemoteProtocolError("a frame of a WebSocket of 2^63 bytes or more")
        try:
            opcode = Opcode(first & 0x0F)
        except ValueError as error:
            raise RemoteProtocolError(f"a frame of a WebSocket of the unknown kind {first & 0x0F}") from error
        self._is_last = bool(first & _FIN)
        self._check_place(opcode, length)
        self._opcode, self._left_bytes = opcode, length
        if self._keeps and len(self._text) + length > MAX_TEXT_BYTES:
            raise RemoteProtocolError(f"a text of more than {MAX_TEXT_BYTES} bytes")

    def _check_place(self, opcode: Opcode, length: int) -> None:
        """Raise RemoteProtocolError for a frame that must not follow the ones before it."""
        if opcode.is_control:
            if not self._is_last or length > _MAX_CONTROL_BYTES:
                raise RemoteProtocolError("a control frame of a WebSocket that is too long")
        elif (opcode is Opcode.CONTINUATION) is (self._message is None):
            raise RemoteProtocolError("a part of a WebSocket's message without its beginning, or without its end")
        elif opcode is not Opcode.CONTINUATION:
            self._message = opcode

    def _end_frame(self, messages: list[Message]) -> None:
        opcode, keeps = self._opcode, self._keeps
        self._opcode = None
        data = bytes(self._kept)
        self._kept.clear()
        if opcode is not None and opcode.is_control:
            messages.append(Message(opcode, data))
            return
        if keeps:
            self._text += data
        if not self._is_last:
            return
        if self._message is Opcode.TEXT:
            messages.append(Message(Opcode.TEXT, bytes(self._text)))
        self._text.clear()
        self._message = None


def binary_head(payload_bytes: int, *, is_client: bool = False) -> bytes:
    """Return the head of a whole binary message. A client's has a mask, which stays the same for each message.

    RFC 6455 wants a mask that nobody predicts (5.3), so that no page chooses the bytes on the wire. Random payload
    is that already: no page chose it, and it needs no pass over it before it is sent.
    """
    return _head(Opcode.BINARY, payload_bytes, is_client=is_client)


def message_head(message_bytes: int) -> bytes:
    """Return the head of a server's binary message that has this many bytes with its head."""
    for head_bytes in (2, 4, 10):
        head = binary_head(message_bytes - head_bytes)
        if len(head) == head_bytes:
            return head
    raise ValueError(f"no message has {message_bytes} bytes")


def close_frame(code: int = 1000) -> bytes:
    """Return a client's Close frame."""
    data = code.to_bytes(2)
    masked = bytes(byte ^ mask for byte, mask in zip(data, _MASK, strict=False))
    return _head(Opcode.CLOSE, len(data), is_client=True) + masked


def _head(opcode: Opcode, payload_bytes: int, *, is_client: bool) -> bytes:
    bit, mask = (_MASKED, _MASK) if is_client else (0, b"")
    first = bytes([_FIN | opcode])
    if payload_bytes < 126:
        return first + bytes([bit | payload_bytes]) + mask
    code = 126 if payload_bytes < 1 << 16 else 127  # a length in more bytes than it needs is not accepted
    return first + bytes([bit | code]) + _LENGTHS[code].pack(payload_bytes) + mask
