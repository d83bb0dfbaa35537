"""The search for a path's MTU: exact on every path, ended by no answer, and over real sockets of both families."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerRefused, PeerUnreachable
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.path_mtu import MtuSearch, measure_path_mtu
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.path_probe import MtuBound, PathMtu
from linkgauge.engine.workloads.udp.df_socket import SizeError

from .older_end import older_end

pytestmark = pytest.mark.usefixtures("fork_server")

LEAST, MOST = 576, 65_535


def search_path(truth: int, interface: int, router_mtu: int | None = None, rounds: int = 40) -> MtuSearch:
    """Search a path whose packets of up to `truth` bytes pass, with a router that reports an MTU, if any."""
    search = MtuSearch(LEAST, MOST)
    while (lengths := search.next_lengths()) and rounds:
        rounds -= 1
        for length in lengths:
            if length > interface:
                search.note_error(SizeError(interface))
            elif length <= truth:
                search.note_passed(length)
            elif router_mtu is not None and length > router_mtu:
                search.note_error(SizeError(router_mtu, "192.0.2.1"))
            else:
                search.note_lost(length)
    assert rounds
    return search


@given(st.integers(LEAST, 9_216), st.integers(LEAST, 9_216))
def test_the_mtu_of_a_black_hole_is_exact(truth: int, interface: int) -> None:
    """For any lengths: only the sender's own kernel reports an MTU."""
    result = search_path(truth, interface).result(Direction.OUT)
    assert (result.mtu_bytes, result.interface_bytes) == (min(truth, interface), interface)
    assert result.bound is (MtuBound.INTERFACE if truth >= interface else MtuBound.BLACK_HOLE)


@given(st.integers(LEAST, 9_000), st.integers(LEAST, 9_000))
def test_a_router_is_believed_once_its_mtu_has_passed(truth: int, router_mtu: int) -> None:
    """One that reports more than passes hides a black hole; one that reports less is wrong."""
    result = search_path(truth, 9_000, router_mtu).result(Direction.OUT)
    if router_mtu >= truth:
        assert result.mtu_bytes == truth
    is_router = truth == router_mtu < 9_000
    if is_router or router_mtu > truth:
        assert result.bound is (MtuBound.ROUTER if is_router else MtuBound.BLACK_HOLE)
    assert result.router == ("192.0.2.1" if result.bound is MtuBound.ROUTER else None)


def test_a_path_that_carries_nothing_is_unknown() -> None:
    """Not even the smallest packet arrives: there is no MTU, and longer ones are not tried."""
    search = MtuSearch(LEAST, MOST)
    for length in search.next_lengths():
        search.note_lost(length)
    assert search.next_lengths() == []
    result = search.result(Direction.IN)
    assert (result.mtu_bytes, result.bound) == (None, MtuBound.BLACK_HOLE)


def test_a_length_that_was_lost_by_chance_is_tried_again() -> None:
    """Without an explanation, the length above the result is tried by itself before the search ends."""
    search = MtuSearch(LEAST, 1_500)
    unlucky = {1_500, 1_401}
    while lengths := search.next_lengths():
        for length in lengths:
            if length in unlucky:
                unlucky.discard(length)
                search.note_lost(length)
            else:
                search.note_passed(length)
    assert search.result(Direction.OUT).mtu_bytes == 1_500


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_loopback_carries_its_own_mtu_in_both_directions(host: str) -> None:
    """Over an endpoint's port, without a run; the endpoint has nothing left of it."""
    lines: list[str] = []
    async with Endpoint(listen(host, 0), lines.append) as endpoint:
        async with asyncio.timeout(20):
            path = await measure_path_mtu(Peer(*endpoint.address))
        assert isinstance(path, PathMtu)
        assert [each.bound for each in path.directions] == [MtuBound.INTERFACE] * 2
        assert {each.mtu_bytes for each in path.directions} == {65_535 if host == "127.0.0.1" else 65_536}
        assert {each.datagram_bytes for each in path.directions} == {65_507 if host == "127.0.0.1" else 65_488}
        assert not path.has_black_hole
        async with asyncio.timeout(20):
            while endpoint.admission.admitted_clients:  # noqa: ASYNC110 - only looking tells
                await asyncio.sleep(0.01)
    assert not [line for line in lines if "rejected" in line]


async def test_an_end_without_udp_is_told_by_its_version() -> None:
    """Of the same protocol: it closes the connection when it reads the plan."""
    async with asyncio.timeout(20), older_end() as peer:
        with pytest.raises(PeerError, match="may be older than UDP tests: install the same version"):
            await measure_path_mtu(peer)
        with pytest.raises(PeerError, match="may be older than UDP tests: install the same version"):
            async with open_run(Plan(workload=Workload.UDP), peer):
                pass


async def test_an_endpoint_that_declines_says_why(endpoint: Endpoint) -> None:
    """Its limits hold as for a test; without an endpoint the usual reason follows."""
    endpoint.admission.limits = Limits(udp_packets_s=1, udp_rate_bit_s=1_000, clients=1, sessions=1)
    endpoint.admission.close("the endpoint is shutting down")
    peer = Peer(*endpoint.address)
    with pytest.raises(PeerRefused, match="shutting down"):
        await measure_path_mtu(peer)
    with pytest.raises(PeerUnreachable, match="nothing listens"):
        await measure_path_mtu(Peer("127.0.0.1", 1))
