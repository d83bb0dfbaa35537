"""Local addresses, interfaces and ports: before a run, an error names a missing one, and those that exist."""

import socket

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan, Settings, SocketOptions
from linkgauge.engine.near.run import open_run
from linkgauge.engine.near.socket_option_checks import check_binding, check_options

NO_PEER = Peer("192.0.2.254", 9)


@pytest.mark.parametrize(
    ("options", "field", "text"),
    [
        (SocketOptions(congestion="nosuch"), "congestion control", "nosuch is invalid; this machine has .*reno"),
        (SocketOptions(device="nonet0"), "device", "this machine has no such interface; it has lo"),
        (SocketOptions(source="198.51.100.77"), "source", "this machine has no such address; it has 127.0.0.1"),
        (SocketOptions(source="localhost"), "source", "give an IP address of this machine: 127.0.0.1"),
    ],
)
async def test_what_this_machine_lacks_is_an_error_before_anything_is_connected(
    options: SocketOptions, field: str, text: str
) -> None:
    """Its peer does not even answer."""
    with pytest.raises(PlanError, match=text) as caught:
        async with open_run(Plan(socket=options), NO_PEER):
            raise AssertionError("the run must not start")
    assert caught.value.field == field


async def test_an_address_of_the_other_family_is_an_error_that_names_those_of_the_right_one(far_end: Peer) -> None:
    """The peer has IPv4."""
    with pytest.raises(PlanError, match=r"127\.0\.0\.1 needs an IPv4 address: 127\.0\.0\.1"):
        async with open_run(Plan(socket=SocketOptions(source="::1")), far_end):
            raise AssertionError("the run must not start")


async def test_a_port_that_is_in_use_is_an_error_before_the_run(far_end: Peer) -> None:
    """Each port that a session takes is checked."""
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        plan = Plan(Settings(Direction.DUPLEX, 1), client_port=port - 1)
        text = f"client port ({port - 1}|{port}) is invalid; another program uses this port"
        with pytest.raises(PlanError, match=text):
            async with open_run(plan, far_end):
                raise AssertionError("the run must not start")


def test_this_machines_own_addresses_and_interfaces_are_accepted() -> None:
    """Of either family."""
    check_options(SocketOptions(source="127.0.0.1", device="lo"))
    check_binding(Plan(socket=SocketOptions(source="127.0.0.1")), "192.0.2.1")


async def test_both_families_have_their_own_addresses() -> None:
    """An IPv6 peer takes an IPv6 source."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    async with Endpoint(listen("::1", 0)) as endpoint:
        peer = Peer(*endpoint.address)
        with pytest.raises(PlanError, match="needs an IPv6 address"):
            async with open_run(Plan(socket=SocketOptions(source="127.0.0.1")), peer):
                raise AssertionError("the run must not start")
