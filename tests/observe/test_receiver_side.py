"""Limits that a receiver's own kernel shows."""

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.observe.receiver_side import find_receiver_limits
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.flow_view import flow_views

from .made_sockets import Socket
from .tracked import RATE, evidence_of, follow

STEP = 250_000  # a quarter of a second at 8 Mb/s
TRIP_US = 100_000  # in which 100 000 bytes arrive


def receiving(rate: ExpectedRate | None = None, reordered: int = 0, **figures: object) -> list[Finding]:
    """Return the findings of a receiver of 8 Mb/s with these figures; `reordered` packets in each sample."""

    def at(n: int) -> Socket:
        return Socket(received=n * STEP, out_of_order=n * reordered).later(**figures)

    view = flow_views(evidence_of(follow(at), Direction.IN, rate))[0]
    return list(find_receiver_limits(view, at(12).reading().info))


def memory(unread: int, buffer: int) -> tuple[int, ...]:
    """Return SO_MEMINFO."""
    return (unread, buffer, 0, 0, 0, 0, 0, 0, 0)


def test_unread_data_is_the_programs_fault() -> None:
    """Its window is closed for the sender."""
    (finding,) = receiving(memory=memory(90_000, 131_072))
    assert (finding.code, finding.confidence) == ("receive-window", 0.8)
    assert "69 %" in finding.evidence


@pytest.mark.parametrize(
    ("window", "buffer", "options", "code"),
    [
        (110_000, 220_000, 7, "window-below-bdp"),
        (110_000, 6 << 20, 7, "window-clamped"),
        (60_000, 220_000, 3, "window-scaling-off"),
        (314_796, 476_223, 3, "window-scaling-off"),  # more than a segment can announce
    ],
)
def test_a_window_that_holds_all_that_arrives_cannot_grow(
    window: int, buffer: int, options: int, code: str
) -> None:
    """By the program, by the kernel's limit, or without window scaling."""
    (finding,) = receiving(window=window, receive_rtt_us=TRIP_US, options=options, memory=memory(0, buffer))
    assert finding.code == code


def test_a_window_with_room_is_none() -> None:
    """Linux lets it grow to twice of what arrives."""
    assert not receiving(window=250_000, receive_rtt_us=TRIP_US)


def test_packets_out_of_order_explain_only_a_rate_below_the_expected_one() -> None:
    """A full queue loses packets, too, and is no fault."""
    assert not receiving(reordered=20)
    (finding,) = receiving(RATE, reordered=20)
    assert (finding.code, finding.confidence) == ("loss", 0.5)
