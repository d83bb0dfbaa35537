"""A trace of the path, as the other end may send it: what no path can be is refused."""

import json
from typing import Any

import pytest
from linkgauge.engine.model.counters.path_trace import MAX_WINDOWS, WINDOW_NS, HopTrace, MtuReport, PathTrace
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import DecodeError
from linkgauge.engine.model.serialization import decode, encode

HOP = HopTrace(("192.0.2.1", "2001:db8::1"), (4, 4, 4), (4, 0, 1), (9, None, 7))
TRACE = PathTrace(End.FAR, 1, WINDOW_NS, (HOP,), True, (0, 4, 4), (MtuReport("192.0.2.1", 1_400),))


def changed(**members: Any) -> dict[str, Any]:
    """Return a good trace as JSON with other members; those of its hop begin with `hop_`."""
    value = json.loads(json.dumps(encode(TRACE)))
    for name, member in members.items():
        if name.startswith("hop_"):
            value["hops"][0][name.removeprefix("hop_")] = member
        else:
            value[name] = member
    return value


def test_a_good_trace_is_read_as_it_was() -> None:
    """And tells which windows lie within a time under load."""
    assert decode(PathTrace, changed()) == TRACE
    assert list(TRACE.loaded_window(0, 2 * WINDOW_NS)) == [1, 2]
    assert list(TRACE.loaded_window(1, 99 * WINDOW_NS)) == [2]
    assert list(TRACE.loaded_window(99 * WINDOW_NS, 100 * WINDOW_NS)) == []


@pytest.mark.parametrize(
    "members",
    [
        {"hop_routers": ["gw.example"]},
        {"hop_routers": ["192.0.2.1\x1b[31m"]},
        {"hop_routers": ["192.000.002.001"]},
        {"hop_routers": ["2001:DB8::1"]},
        {"hop_routers": [f"192.0.2.{number}" for number in range(9)]},
        {"hop_answered": [5, 0, 1]},
        {"hop_answered": [4, 1, 1]},
        {"hop_least_ns": [9, 9, 7]},
        {"hop_least_ns": [10**12, None, 7]},
        {"hop_sent": [4, 4]},
        {"hop_sent": [2**40, 4, 4]},
        {"hops": [], "is_reached": True},
        {"idle_windows": 4},
        {"received": [1] * 4},
        {"received": [0] * (MAX_WINDOWS + 1), "hops": [], "is_reached": False},
        {"received": [0, 0, 2**40]},
        {"window_ns": 1},
        {"window_ns": 2**60},
        {"mtus": [{"router": "192.0.2.1", "mtu_bytes": 2**20}]},
        {"mtus": [{"router": "192.0.2.1", "mtu_bytes": 9}] * 9},
    ],
)
def test_what_no_path_can_be_is_refused(members: dict[str, Any]) -> None:
    """Rises and losses are computed from it, and its addresses are printed."""
    with pytest.raises(DecodeError):
        decode(PathTrace, changed(**members))
