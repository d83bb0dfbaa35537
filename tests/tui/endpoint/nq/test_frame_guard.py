"""What the frames of a client may cost, whatever pieces they come in."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.tui.endpoint.nq.frame_guard import (
    FRAMES_S,
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    MAX_SETTINGS,
    RESETS_S,
    FrameBudget,
    FrameGuard,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SECOND_NS = 10**9


def guard_after_preface() -> FrameGuard:
    """Return the guard of a connection that has begun."""
    guard = FrameGuard(FrameBudget(0))
    guard.admit(PREFACE, 0)
    return guard


def many(frame: Frame, count: int) -> bytes:
    """Return a frame many times."""
    return frame.serialize() * count


@pytest.mark.parametrize(
    "frame", [PingFrame(0, b"12345678"), SettingsFrame(0), DataFrame(1, b""), DataFrame(1, b"x"), Frame]
)
def test_frames_without_payload_have_a_rate(frame: Frame | type[Frame]) -> None:
    """Whatever they are, known kinds or not; after a second there is room for as many."""
    data = bytes((0, 0, 0, 200, 0, 0, 0, 0, 0)) if isinstance(frame, type) else frame.serialize()
    budget = FrameBudget(0)
    guard, later = FrameGuard(budget), FrameGuard(budget)
    guard.admit(PREFACE + data * 2 * FRAMES_S, 0)
    with pytest.raises(RemoteProtocolError, match="frames without payload"):
        guard.admit(data, 0)
    later.admit(PREFACE + data * FRAMES_S, SECOND_NS)


def test_payload_has_no_rate() -> None:
    """An upload is what such a client is for."""
    guard_after_preface().admit(many(DataFrame(1, bytes(1_024)), 20_000), 0)


def test_connections_of_an_address_share_its_budget() -> None:
    """Or a second connection would be a second budget."""
    budget = FrameBudget(0)
    first, second = FrameGuard(budget), FrameGuard(budget)
    first.admit(PREFACE + many(PingFrame(0, b"12345678"), 2 * FRAMES_S), 0)
    with pytest.raises(RemoteProtocolError):
        second.admit(PREFACE + many(PingFrame(0, b"12345678"), 1), 0)


def test_withdrawn_requests_have_a_rate_of_their_own() -> None:
    """Rapid reset (CVE-2023-44487)."""
    guard = guard_after_preface()
    guard.admit(many(RstStreamFrame(1), 2 * RESETS_S), 0)
    with pytest.raises(RemoteProtocolError, match="withdrawn"):
        guard.admit(many(RstStreamFrame(1), 1), 0)


def test_a_block_of_headers_is_bounded_as_a_whole() -> None:
    """A flood of CONTINUATION (CVE-2024-27316) is cut off at 8 KiB, and blocks that end begin anew."""
    guard = guard_after_preface()
    whole = HeadersFrame(1, bytes(MAX_HEADER_BYTES), flags={"END_HEADERS"})
    guard.admit(many(whole, 10), 0)
    open_block = HeadersFrame(1, bytes(1_024)), *[ContinuationFrame(1, bytes(1_024))] * 7
    guard.admit(b"".join(frame.serialize() for frame in open_block), 0)
    with pytest.raises(RemoteProtocolError, match="bytes of headers"):
        guard.admit(ContinuationFrame(1, b"x").serialize(), 0)


def test_windows_may_be_opened_as_often_as_payload_was_sent() -> None:
    """A client of Go returns 4 KiB at a time, twice; without payload to return, each counts as any frame."""
    guard, update = guard_after_preface(), WindowUpdateFrame(1, 4_096)
    guard.note_sent(2_048 * 50_000)
    guard.admit(many(update, 50_000), 0)
    guard.admit(many(update, 2 * FRAMES_S), 0)
    with pytest.raises(RemoteProtocolError):
        guard.admit(many(update, 2), 0)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (DataFrame(1, bytes(MAX_FRAME_BYTES + 1)), "a frame of"),
        (SettingsFrame(0, dict.fromkeys(range(100, 101 + MAX_SETTINGS), 1)), "settings"),
    ],
)
def test_a_frame_that_is_too_large_is_refused_by_its_head(frame: Frame, words: str) -> None:
    """Before its body has come: 65,536 unknown settings would take some 40 MB of memory."""
    with pytest.raises(RemoteProtocolError, match=words):
        guard_after_preface().admit(frame.serialize()[:9], 0)


@given(st.lists(st.integers(1, 40), min_size=1), st.binary(max_size=200))
def test_pieces_of_any_size_are_counted_alike(sizes: list[int], tail: bytes) -> None:
    """A head may come byte by byte."""
    data = PREFACE + many(PingFrame(0, b"12345678"), 2 * FRAMES_S)[: 17 * 40] + DataFrame(1, tail).serialize()
    whole, parts = FrameGuard(FrameBudget(0)), FrameGuard(FrameBudget(0))
    whole.admit(data, 0)
    at = 0
    while at < len(data):
        for size in sizes:
            parts.admit(data[at : at + size], 0)
            at += size
    assert (whole._skip, whole._head) == (parts._skip, parts._head)
    assert whole._budget._frames._left == parts._budget._frames._left
