"""The common part of all sessions: the payload, the counters over several connections, and their end."""

import os
import socket

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.workloads.session import CLOSED_BY_PEER, PIECE_BYTES, Payload

from ..waiting import until
from .stream_pair import StreamPair


@pytest.mark.parametrize("size_bytes", [64, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES - 5])
def test_the_pieces_of_a_payload_are_its_block_and_its_file(size_bytes: int) -> None:
    """One write carries the block in either mode."""
    payload = Payload(size_bytes, Mode.SENDFILE)
    assert b"".join(payload.pieces) == payload.block
    assert len(payload.block) == payload.size_bytes == size_bytes
    assert os.pread(payload.fd, size_bytes + 1, 0) == payload.block
    payload.close()


def test_only_sendfile_needs_a_file() -> None:
    """Most workers save the 10 ms that it takes."""
    payload = Payload(64)
    assert payload.fd == -1
    payload.close()


async def test_a_reopened_session_continues_the_counts_of_its_slot() -> None:
    """Cumulative words only rise; the slot has the new connection's generation."""
    pair = StreamPair()
    pair.receiver.close()
    for generation, total in ((1, 1_000), (2, 2_000)):
        near, far = socket.socketpair()
        far.setblocking(False)
        pair.receiver = pair.receive(far, generation)
        pair.receiver.start()
        near.sendall(bytes(1_000))
        await until(lambda total=total: pair.received_bytes >= total)
        slot = pair.counters.read(Direction.IN, 1)
        assert slot is not None
        assert (slot.bytes, slot.is_open) == (total, True)
        pair.receiver.close()
        slot = pair.counters.read(Direction.IN, 1)
        assert slot is not None
        assert (slot.bytes, slot.is_open) == (total, False)
        near.close()
    assert pair.lost == []
    pair.close()


async def test_a_connection_that_the_peer_closes_is_lost_once() -> None:
    """Closing it afterwards reports nothing more."""
    pair = StreamPair()
    near, far = socket.socketpair()
    far.setblocking(False)
    pair.receiver.close()
    pair.receiver = pair.receive(far)
    pair.receiver.start()
    near.close()
    await until(lambda: pair.lost)
    pair.receiver.close()
    assert pair.lost == [CLOSED_BY_PEER]
    pair.close()
