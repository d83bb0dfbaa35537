"""Frames of a control connection: a length, and a message as JSON, compressed if it is a sample.

Pure. A frame is a length of four bytes, big-endian, and a body. Between two ends with a key a code follows each
frame after the proofs (FrameCodes); the length does not count it. Samples are compressed because they travel on the
very link that is measured: one of five sessions is 1.2 kB of JSON, and four a second were 0.4 % of a 10 Mb/s link.
Each message is compressed by itself, against a dictionary of the words of such messages: no state is kept, and a
lost connection loses nothing.
"""

import hmac
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from ..model.directions import End
from ..model.errors import ConnectionTampered, LimitReached, LinkgaugeError, RemoteProtocolError
from ..model.serialization import decode_tagged, encode_tagged, reject_duplicate_keys
from ..model.shared_key import constant_time_equal, mac
from .messages import MESSAGES_BY_SENDER, Message, Report, Traced
from .tokens import CODE_BYTES

_LENGTH: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">Q")
# A far end's report of 256 connections and 256 cores is about 110 kB; no message of a near end is near 16 KiB.
MAX_FRAME_BYTES: Final = {End.NEAR: 16 * 1024, End.FAR: 512 * 1024}

PEER_NAMES: Final = {End.NEAR: "client", End.FAR: "remote host"}

_COMPRESSED_MARK: Final = b"z"  # no JSON text begins with it
_MIN_COMPRESSED_BYTES: Final = 96

# The dictionary of zlib (RFC 1950, FDICT), the most frequent words last. It is part of the protocol: never edit it.
_DICTIONARY: Final = (
    b'{"type":"SessionOpened","facts":{"end":"far","direction":"duplex","session":1,"congestion":"cubic",'
    b'"window_granted_bytes":null,"mss_bytes":1448,"timestamps":true,"sack":true,"window_scaling":true,'
    b'"mode":"copy"}}{"type":"Report","sample":{"end":"far","index":1,"elapsed_ns":2000000000,'
    b'"interval_ns":250000000,"process_cpu_ns":10000000,"cores":[{"user_ns":10000000,"system_ns":20000000,'
    b'"softirq_ns":0,"steal_ns":0,"idle_ns":230000000},{"user_ns":0,"system_ns":0,"softirq_ns":0,"steal_ns":0,'
    b'"idle_ns":250000000}],"sessions":[{"direction":"in","session":1,"bytes":1048576,"retransmits":0,'
    b'"rtt_us":1000,"cwnd_bytes":14480,"mss_bytes":1448,"busy_us":250000,"rwnd_limited_us":0,'
    b'"sndbuf_limited_us":0,"transactions":null,"latency_p50_ns":null,"latency_p99_ns":null,"bytes_retrans":0,'
    b'"min_rtt_us":500,"pacing_bit_s":100000000,"delivery_bit_s":94000000,"peer_window_bytes":1048576,'
    b'"out_of_order":null,"rcv_space_bytes":null}],"latency":[],"busiest_worker_ns":10000000,'
    b'"nic":{"received_bytes":1048576,"sent_bytes":10485,"errors":0,"dropped":0,"collisions":0}},'
    b'{"direction":"out","session":2,"bytes":1048576,"retransmits":null,"rtt_us":null,"cwnd_bytes":null,'
    b'"mss_bytes":null,"busy_us":null,"rwnd_limited_us":null,"sndbuf_limited_us":null,"transactions":null,'
    b'"latency_p50_ns":null,"latency_p99_ns":null,"bytes_retrans":null,"min_rtt_us":null,"pacing_bit_s":null,'
    b'"delivery_bit_s":null,"peer_window_bytes":null,"out_of_order":0,"rcv_space_bytes":1048576}'
)


def encode_frame(message: Message) -> bytes:
    """Return the frame of a message."""
    body = json.dumps(encode_tagged(message), separators=(",", ":"), ensure_ascii=False).encode()
    if isinstance(message, Report | Traced):  # one comes often, the other is long
        body = compress(body)
    return add_length_prefix(body)


def add_length_prefix(body: bytes) -> bytes:
    """Return the frame of a body."""
    return _LENGTH.pack(len(body)) + body


def decode_body(body: bytes, sender: End) -> Message:
    """Return the message of a frame's body; raise RemoteProtocolError if its sender has no such message."""
    try:
        value = json.loads(decompress(body, MAX_FRAME_BYTES[sender]), object_pairs_hook=reject_duplicate_keys)
        return decode_tagged(MESSAGES_BY_SENDER[sender], value)
    except (LinkgaugeError, ValueError, RecursionError) as error:
        why = error if isinstance(error, LinkgaugeError) else "it is not valid JSON"
        raise RemoteProtocolError(f"a message of the {PEER_NAMES[sender]} cannot be read: {why}") from error


class FrameCodes:
    """The codes of the frames that one end sends: of the first, of the second, and so on.

    A code depends on the frame's number, which both ends count and neither sends. After a frame that was changed,
    added, removed or moved, no code is right.
    """

    __slots__ = ("_count", "_key")

    def __init__(self, shared_secret: bytes, role: bytes) -> None:
        """Begin with the first frame; `role` is its sender's."""
        self._key = mac(shared_secret, b"frames", role)
        self._count = 0

    def next_code(self, frame: bytes) -> bytes:
        """Return the code of the next frame, its length included."""
        code = hmac.digest(self._key, _NUMBER.pack(self._count) + frame, "sha256")
        self._count += 1
        return code[:CODE_BYTES]


class FrameReader:
    """Cuts a byte stream into the bodies of its frames. A length over the limit is refused, not buffered.

    `codes` are those of the frames from now on, None if they have none. `charge` is called for each whole frame
    before it is used, and raises LimitReached for one too many.
    """

    def __init__(self, sender: End) -> None:
        self.max_frame_bytes = MAX_FRAME_BYTES[sender]
        self.codes: FrameCodes | None = None
        self.charge: Callable[[], None] | None = None
        self._buffer = bytearray()

    def read_frames(self, data: bytes) -> Iterator[bytes]:
        """Yield the bodies that are complete with this data, each before the next one is looked at.

        The result must be iterated to its end. Raises LimitReached at a length over the limit, ConnectionTampered
        at a wrong code, and the error of `charge`, each after the bodies before it, however the bytes were cut.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self.max_frame_bytes:
                text = f"a message of {length} bytes is over the limit of {self.max_frame_bytes}"
                raise LimitReached(text, "message_bytes", self.max_frame_bytes)
            whole = _LENGTH.size + length
            end = whole if self.codes is None else whole + CODE_BYTES
            if len(self._buffer) < end:
                break
            if self.charge is not None:
                self.charge()
            frame = bytes(self._buffer[:whole])
            if self.codes is not None:
                code = bytes(self._buffer[whole:end])
                if not constant_time_equal(self.codes.next_code(frame), code):
                    raise ConnectionTampered("the control connection was changed on its way")
            del self._buffer[:end]
            yield frame[_LENGTH.size :]


def compress(body: bytes) -> bytes:
    """Return a body in compressed form, or as it is if that is not smaller."""
    if len(body) < _MIN_COMPRESSED_BYTES:
        return body
    packer = zlib.compressobj(level=6, zdict=_DICTIONARY)
    packed = _COMPRESSED_MARK + packer.compress(body) + packer.flush()
    return packed if len(packed) < len(body) else body


def decompress(body: bytes, limit_bytes: int) -> bytes:
    """Return the original body; raise RemoteProtocolError if it is broken or larger than the limit.

    No more than the limit is ever unpacked, whatever size the compressed bytes claim.
    """
    if not body.startswith(_COMPRESSED_MARK):
        return body
    unpacker = zlib.decompressobj(zdict=_DICTIONARY)
    try:
        whole = unpacker.decompress(body[len(_COMPRESSED_MARK) :], limit_bytes + 1)
    except zlib.error as error:
        raise RemoteProtocolError("a message cannot be unpacked") from error
    if len(whole) > limit_bytes:
        raise RemoteProtocolError(f"a message unpacks to more than {limit_bytes} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise RemoteProtocolError("a packed message is incomplete")
    return whole
