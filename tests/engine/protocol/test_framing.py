"""Messages made small on the link that is measured, and frames whose codes nobody else can make."""

import json
import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import ConnectionTampered, LimitReached, RemoteProtocolError
from linkgauge.engine.model.shared_key import FAR_ROLE, NEAR_ROLE
from linkgauge.engine.protocol.framing import (
    _DICTIONARY,
    MAX_FRAME_BYTES,
    FrameCodes,
    FrameReader,
    add_length_prefix,
    compress,
    decompress,
    encode_frame,
)
from linkgauge.engine.protocol.messages import Report
from linkgauge.engine.protocol.tokens import CODE_BYTES

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


BODIES = st.lists(st.binary(max_size=60), max_size=8)


def with_codes(bodies: list[bytes], secret: bytes = b"of both ends", role: bytes = NEAR_ROLE) -> list[bytes]:
    """Return the frames of bodies, each with its code."""
    codes = FrameCodes(secret, role)
    frames = [add_length_prefix(body) for body in bodies]
    return [frame + codes.next_code(frame) for frame in frames]


def read(*pieces: bytes, has_codes: bool = True) -> tuple[list[bytes], Exception | None]:
    """Return the bodies that the near end's frames have, and the error at which they end."""
    reader = FrameReader(End.NEAR)
    reader.codes = FrameCodes(b"of both ends", NEAR_ROLE) if has_codes else None
    found: list[bytes] = []
    try:
        for piece in pieces:
            found.extend(reader.read_frames(piece))
    except (ConnectionTampered, LimitReached) as error:
        return found, error
    return found, None


@given(BODIES, st.lists(st.integers(0, 700), max_size=8), st.booleans())
def test_frames_are_the_same_however_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int], has_codes: bool
) -> None:
    """Cut within a length, a body or a code."""
    stream = b"".join(with_codes(bodies) if has_codes else map(add_length_prefix, bodies))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = (stream[start:stop] for start, stop in pairwise(edges))
    assert read(*pieces, has_codes=has_codes) == (bodies, None)


@given(BODIES.filter(bool), st.data())
def test_from_the_first_changed_byte_on_no_frame_is_read(bodies: list[bytes], data: st.DataObject) -> None:
    """Whatever is changed, put in, taken out, doubled or moved: only what was before it is read."""
    frames = with_codes(bodies)
    stream = b"".join(frames)
    start, stop = sorted((data.draw(st.integers(0, len(stream))), data.draw(st.integers(0, len(stream)))))
    changed = data.draw(
        st.one_of(
            st.binary(max_size=80).map(lambda more: stream[:start] + more + stream[stop:]),
            st.just(stream[:stop] + stream[start:]),
            st.permutations(frames).map(b"".join),
            st.lists(st.sampled_from(frames), max_size=8).map(b"".join),
        )
    )
    assume(changed != stream)
    same = next((n for n, pair in enumerate(zip(stream, changed, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(stream), len(changed)) if same is None else same
    ends = [sum(map(len, frames[: count + 1])) for count in range(len(frames))]
    found, error = read(changed)
    assert found == bodies[: sum(1 for end in ends if end <= same)]
    if error is None:  # it waits for the rest of a frame
        assert read(changed, bytes(1 << 20))[1] is not None


@pytest.mark.parametrize(
    "frames",
    [
        with_codes([b"{}"], role=FAR_ROLE),
        with_codes([b"{}"], secret=b"of another conversation"),
        [add_length_prefix(b"{}") + bytes(CODE_BYTES)],
        with_codes([b"{}"])[:1] * 2,
    ],
    ids=["of the other direction", "of another conversation", "without a code", "twice"],
)
def test_a_code_is_valid_for_one_frame_of_one_direction_of_one_conversation(frames: list[bytes]) -> None:
    """What was recorded elsewhere is of no use."""
    assert isinstance(read(*frames)[1], ConnectionTampered)


def test_a_frame_is_charged_before_anything_is_done_with_it() -> None:
    """Also one whose code is wrong: the limit is reached first."""
    left = 3

    def charge() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise LimitReached("too many", "messages_s", 3)

    reader = FrameReader(End.NEAR)
    reader.codes = FrameCodes(b"of both ends", NEAR_ROLE)
    reader.charge = charge
    stream = b"".join(with_codes([b"{}"] * 3)) + add_length_prefix(b"{}") + bytes(CODE_BYTES)
    with pytest.raises(LimitReached):
        list(reader.read_frames(stream))
    assert left == -1


@pytest.mark.parametrize("sender", End)
def test_a_length_over_the_limit_is_refused_before_its_body_comes(sender: End) -> None:
    """Four bytes are enough to refuse, and none is kept for the body they promise."""
    limit = MAX_FRAME_BYTES[sender]
    for length in (limit + 1, 2**31, 2**32 - 1):
        reader = FrameReader(sender)
        with pytest.raises(RemoteProtocolError, match=f"{length} bytes is over the limit of {limit}"):
            list(reader.read_frames(struct.pack(">I", length)))
        assert len(reader._buffer) == 4
    assert list(FrameReader(sender).read_frames(struct.pack(">I", limit) + bytes(limit))) == [bytes(limit)]


def test_messages_before_an_oversized_length_are_delivered() -> None:
    """One chunk or two, the frames before the broken one are read."""
    reader = FrameReader(End.FAR)
    bodies: list[bytes] = []
    with pytest.raises(RemoteProtocolError):
        bodies.extend(reader.read_frames(add_length_prefix(b"{}") + b"\xff\xff\xff\xff"))
    assert bodies == [b"{}"]
