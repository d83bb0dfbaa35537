"""The parameters of an iperf3 test: the client's request, as a value and as JSON.

Pure. A wrong type is ignored, as a stock server ignores it since version 3.18. An impossible value is a refusal
with the number of iperf3. Every value is bounded here; an endpoint's own limits are below these.
"""

from dataclasses import dataclass
from typing import Any, Final

from ...model.directions import Direction
from ...model.plan import (
    MAX_BYTES_LIMIT,
    MAX_DATAGRAM_BYTES,
    MAX_MSS_BYTES,
    MAX_RATE_BIT_S,
    MAX_SESSIONS,
    MIB,
    MIN_DATAGRAM_BYTES,
    MIN_MSS_BYTES,
)
from .json_bodies import as_object, read_text, read_true, read_whole
from .refusals import ErrorNumber, Iperf3Refusal, refuse_by_number

MAX_DURATION_S: Final = 86_400
MAX_OMIT_S: Final = 600
MAX_BLOCK_BYTES: Final = MIB
MAX_WINDOW_BYTES: Final = 512 * MIB
DEFAULT_DURATION_S: Final = 10
DEFAULT_BLOCK_BYTES: Final = 131_072
DEFAULT_DATAGRAM_BYTES: Final = 1_448  # with the headers of IPv6 below an MTU of 1500
_MAX_TITLE: Final = 200
_MAX_VERSION: Final = 40
_MAX_CONGESTION: Final = 15
_MAX_TOKEN: Final = 4_096
_PACING_TIMER_US: Final = 1_000  # unused, but every client since 3.2 sends it


# A table: each field is a key of iperf3's document.
@dataclass(frozen=True, slots=True)
class TestParameters:
    """The parameters of a test.

    `duration_s` is the time after the `omit_s` seconds that are not measured, 0 without an end. `bytes_limit` and
    `block_limit` end the test instead, if they are not 0. `parallel` counts the streams of each direction.
    `rate_bit_s` and `pacing_bit_s` (SO_MAX_PACING_RATE) are of one stream; None is unlimited.
    """

    __test__ = False  # no class of tests, for pytest

    is_udp: bool = False
    omit_s: int = 0
    duration_s: int = DEFAULT_DURATION_S
    bytes_limit: int = 0
    block_limit: int = 0
    parallel: int = 1
    block_bytes: int = DEFAULT_BLOCK_BYTES
    is_reverse: bool = False
    is_bidirectional: bool = False
    rate_bit_s: int | None = None
    pacing_bit_s: int | None = None
    mss_bytes: int | None = None
    nodelay: bool = False
    window_bytes: int | None = None
    tos: int = 0
    congestion: str | None = None
    title: str | None = None
    asks_output: bool = False
    has_64bit_counters: bool = False
    is_zerocopy: bool = False
    skips_copy: bool = False
    dont_fragment: bool = False
    auth_token: str | None = None
    client_version: str | None = None

    @property
    def direction(self) -> Direction:
        """The direction of the test, as its client sees it."""
        if self.is_bidirectional:
            return Direction.DUPLEX
        return Direction.IN if self.is_reverse else Direction.OUT

    @property
    def streams(self) -> int:
        """The number of streams in all directions."""
        return self.parallel * len(self.direction.flows)

    @property
    def sent_bytes(self) -> int | None:
        """The bytes after which a server stops sending TCP: whole blocks, as a client counts no others."""
        blocks = self.block_limit or -(-self.bytes_limit // self.block_bytes)
        return None if self.is_udp or not blocks else min(blocks * self.block_bytes, MAX_BYTES_LIMIT)


def encode_parameters(parameters: TestParameters) -> dict[str, Any]:
    """Return the document that a client sends. Keys of options that are off are left out, as in iperf3."""
    always = {
        "udp" if parameters.is_udp else "tcp": True,
        "omit": parameters.omit_s,
        "time": parameters.duration_s,
        "num": parameters.bytes_limit,
        "blockcount": parameters.block_limit,
        "parallel": parameters.parallel,
        "len": parameters.block_bytes,
        "pacing_timer": _PACING_TIMER_US,
    }
    optional = {
        "MSS": parameters.mss_bytes,
        "nodelay": parameters.nodelay,
        "reverse": parameters.is_reverse,
        "bidirectional": parameters.is_bidirectional,
        "window": parameters.window_bytes,
        "bandwidth": parameters.rate_bit_s,
        "fqrate": parameters.pacing_bit_s,
        "TOS": parameters.tos,
        "congestion": parameters.congestion,
        "title": parameters.title,
        "get_server_output": int(parameters.asks_output),
        "udp_counters_64bit": int(parameters.has_64bit_counters),
        "zerocopy": int(parameters.is_zerocopy),
        "dont_fragment": int(parameters.dont_fragment),
        "skip_rx_copy": int(parameters.skips_copy),
        "authtoken": parameters.auth_token,
        "client_version": parameters.client_version,
    }
    return always | {key: value for key, value in optional.items() if value}


def decode_parameters(document: object) -> TestParameters:
    """Return the parameters of a client's document, with iperf3's defaults for missing ones.

    Raises:
        Iperf3Refusal: A value is impossible, or the document is not an object.
    """
    members = as_object(document)
    if members is None:
        raise Iperf3Refusal(ErrorNumber.PARAMETERS, "the parameters are not a JSON object")
    if read_true(members, "sctp"):
        raise Iperf3Refusal(ErrorNumber.PROTOCOL, "this endpoint has no SCTP")
    is_reverse, is_bidirectional = read_true(members, "reverse"), read_true(members, "bidirectional")
    if is_reverse and is_bidirectional:
        raise refuse_by_number(ErrorNumber.BOTH_DIRECTIONS)
    is_udp = read_true(members, "udp")
    read = _BoundedReader(members)
    parameters = TestParameters(
        is_udp=is_udp,
        omit_s=read.whole("omit", 0, MAX_OMIT_S, ErrorNumber.OMIT) or 0,
        duration_s=read.whole("time", 0, MAX_DURATION_S, ErrorNumber.DURATION, DEFAULT_DURATION_S) or 0,
        bytes_limit=read.whole("num", 0, MAX_BYTES_LIMIT, ErrorNumber.PARAMETERS) or 0,
        block_limit=read.whole("blockcount", 0, MAX_BYTES_LIMIT, ErrorNumber.PARAMETERS) or 0,
        parallel=read.whole("parallel", 1, MAX_SESSIONS, ErrorNumber.STREAMS, 1) or 1,
        block_bytes=_read_block(read, is_udp=is_udp),
        is_reverse=is_reverse,
        is_bidirectional=is_bidirectional,
        rate_bit_s=read.whole("bandwidth", 0, MAX_RATE_BIT_S, ErrorNumber.TOTAL_RATE) or None,
        pacing_bit_s=read.whole("fqrate", 0, MAX_RATE_BIT_S, ErrorNumber.TOTAL_RATE) or None,
        mss_bytes=_read_mss(read),
        nodelay=read_true(members, "nodelay"),
        window_bytes=read.whole("window", 0, MAX_WINDOW_BYTES, ErrorNumber.WINDOW_SIZE) or None,
        tos=read.whole("TOS", 0, 255, ErrorNumber.TOS) or 0,
        congestion=_read_congestion(members),
        title=read_text(members, "title", _MAX_TITLE),
        asks_output=read.is_set("get_server_output"),
        has_64bit_counters=read.is_set("udp_counters_64bit"),
        is_zerocopy=read.is_set("zerocopy"),
        skips_copy=read.is_set("skip_rx_copy"),
        dont_fragment=read.is_set("dont_fragment"),
        auth_token=read_text(members, "authtoken", _MAX_TOKEN),
        client_version=read_text(members, "client_version", _MAX_VERSION),
    )
    if (parameters.rate_bit_s or 0) * parameters.parallel > MAX_RATE_BIT_S:
        raise refuse_by_number(ErrorNumber.TOTAL_RATE)
    return parameters


class _BoundedReader:
    """Reads whole numbers of a document, and refuses those out of range by the number of their parameter."""

    def __init__(self, members: dict[str, object]) -> None:
        self._members = members

    def whole(self, key: str, low: int, high: int, error: ErrorNumber, default: int | None = None) -> int | None:
        value = self._members.get(key)
        if value is None or isinstance(value, bool) or not isinstance(value, int | float):
            return default
        if not low <= value <= high:  # no number is in no range
            raise Iperf3Refusal(error, f"{key} is {str(value)[:24]}: this endpoint takes {low} to {high}")
        return int(value)

    def is_set(self, key: str) -> bool:
        return bool(read_whole(self._members, key)) or read_true(self._members, key)


def _read_block(read: _BoundedReader, *, is_udp: bool) -> int:
    if not is_udp:
        low, high, error, default = 1, MAX_BLOCK_BYTES, ErrorNumber.BLOCK_SIZE, DEFAULT_BLOCK_BYTES
    else:
        low, high, error = MIN_DATAGRAM_BYTES, MAX_DATAGRAM_BYTES, ErrorNumber.DATAGRAM_SIZE
        default = DEFAULT_DATAGRAM_BYTES
    return read.whole("len", low, high, error, default) or default


def _read_mss(read: _BoundedReader) -> int | None:
    mss = read.whole("MSS", 0, MAX_MSS_BYTES, ErrorNumber.MSS) or None
    if mss is not None and mss < MIN_MSS_BYTES:
        raise Iperf3Refusal(ErrorNumber.SET_MSS, f"MSS is {mss}: this kernel takes {MIN_MSS_BYTES} or more")
    return mss


def _read_congestion(members: dict[str, object]) -> str | None:
    name = read_text(members, "congestion", _MAX_CONGESTION + 1) or None
    if name is not None and (len(name) > _MAX_CONGESTION or not name.replace("_", "").isalnum()):
        raise Iperf3Refusal(ErrorNumber.CONGESTION, f"no kernel has a congestion control {name!r}")
    return name
