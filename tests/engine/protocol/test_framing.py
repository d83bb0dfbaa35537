"""Messages made small on the link that is measured."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.model.plan import Direction, End
from linkgauge.engine.model.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.protocol.framing import _DICTIONARY, compress, decompress, encode_frame
from linkgauge.engine.protocol.messages import Report

LIMIT = 256 * 1024


def pack(data: bytes) -> bytes:
    """Return bytes packed as a message is."""
    packer = zlib.compressobj(zdict=_DICTIONARY)
    return b"z" + packer.compress(data) + packer.flush()


@given(st.binary(max_size=4_000).filter(lambda body: not body.startswith(b"z")))
def test_compressed_messages_come_back_unchanged_and_never_larger(body: bytes) -> None:
    """Any body survives, and takes no more room than before."""
    assert decompress(compress(body), LIMIT) == body
    assert len(compress(body)) <= len(body)


def test_a_sample_of_five_sessions_is_a_third_of_its_size() -> None:
    """What four of them a second take of a 10 Mb/s link is below what such a link is judged by."""
    sessions = tuple(
        SessionSample(Direction.IN, n, 62_500 + n * 1_013, n % 2, 900 + n * 7, 57_920) for n in range(1, 6)
    )
    cores = tuple(CoreTimes(10_000_000 * n, 20_000_000, 0, 0, 220_000_000) for n in range(2))
    report = Report(Sample(End.FAR, 17, 4_500_123_456, 250_012_345, sessions, cores, 12_345_678))
    frame = encode_frame(report)
    assert len(frame) < 400
    assert json.loads(decompress(frame[4:], LIMIT))["sample"]["index"] == 17


@pytest.mark.parametrize(
    "body",
    [b"z", b"zjunk", pack(b"{}")[:-3], pack(b"{}") + b"more", pack(bytes(LIMIT + 1)), pack(bytes(50_000_000))],
    ids=["nothing", "junk", "cut", "more behind it", "over the limit", "a bomb"],
)
def test_what_cannot_be_unpacked_is_the_peers_fault(body: bytes) -> None:
    """Broken and oversized packed bytes are refused; a bomb is never unpacked beyond the limit."""
    with pytest.raises(RemoteProtocolError):
        decompress(body, LIMIT)
