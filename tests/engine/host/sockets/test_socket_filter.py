"""The bytecode of filters: its jumps, and that the kernel takes it."""

import struct

import pytest
from linkgauge.engine.host.sockets.sock_diag import SockDiag
from linkgauge.engine.host.sockets.socket_filter import EndCondition, compile_filter

from ...tcp_pair import only_linux

PORT = EndCondition(False, None, 443)
HOST = EndCondition(True, "10.0.0.1")


def instructions(code: bytes) -> list[tuple[int, int, int]]:
    """Return place, and the targets of both jumps, of each instruction; a target behind the end does not count."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(code):
        _, yes, no = struct.unpack_from("=BBH", code, at)
        found.append((at, at + yes, at + no))
        at += yes
    return found


def test_conditions_that_must_all_hold_reject_at_the_first_that_does_not() -> None:
    """The end is the verdict that a socket counts, four bytes further that it does not."""
    code = compile_filter([[PORT, HOST]])
    jumps = instructions(code)
    assert jumps[-1][1] == len(code)
    assert {no for _, _, no in jumps} == {len(code) + 4}


def test_an_alternative_that_does_not_hold_leads_to_the_next_one() -> None:
    """And one that holds to the end."""
    code = compile_filter([[PORT], [HOST]])
    first, jump, second = instructions(code)
    assert first[2] == second[0]
    assert jump[2] == len(code)
    assert second[1:] == (len(code), len(code) + 4)


def test_a_filter_without_alternatives_is_empty_and_a_huge_one_is_refused() -> None:
    """The jumps have 16 bits."""
    assert compile_filter([]) == b""
    with pytest.raises(ValueError, match="bytes"):
        compile_filter([[HOST]] * 10_000)


@only_linux
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_kernel_takes_filters_of_any_shape(count: int) -> None:
    """It checks each jump before it runs them."""
    conditions = [PORT, HOST, EndCondition(True, "2001:db8::1", 1), EndCondition(False)]
    with SockDiag(compile_filter([conditions] * count)) as diag:
        assert not list(diag.dump_connections())
