"""Where datagrams were lost, from the counts of both kernels."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import HostDrops
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.udp.loss_location import LossCauses, LossCounts, locate_losses

COUNTS = LossCounts(1_000, send_dropped=0, socket_dropped=0)
QUIET = HostDrops(0, 0, 0, 0, 0, 0, 0, 0)
NOWHERE = LossCauses(0, 0, 1_000, 0, 0, 0)
UNKNOWN_OR_COUNTS = st.none() | st.integers(0, 5_000)


@pytest.mark.parametrize(
    ("counts", "sender", "receiver", "places"),
    [
        (COUNTS, QUIET, QUIET, NOWHERE),
        (COUNTS, None, None, NOWHERE),
        (replace(COUNTS, socket_dropped=300), QUIET, QUIET, replace(NOWHERE, network=700, socket=300)),
        (replace(COUNTS, send_dropped=250), QUIET, QUIET, replace(NOWHERE, network=750, send_queue=250)),
        # The queue's own count has the refused ones in it.
        (
            replace(COUNTS, send_dropped=250), replace(QUIET, qdisc=400), QUIET,
            replace(NOWHERE, network=600, send_queue=400),
        ),
        (COUNTS, replace(QUIET, nic_sent=100), QUIET, replace(NOWHERE, network=900, send_nic=100)),
        # A packet that found a core's queue full counts as dropped by its interface, too.
        (
            COUNTS, QUIET, replace(QUIET, nic_received=500, backlog=200),
            replace(NOWHERE, network=500, receive_nic=300, backlog=200),
        ),
        # More than was lost: packets of other programs. A socket's own count comes first.
        (
            replace(COUNTS, socket_dropped=900), replace(QUIET, qdisc=10_000), QUIET,
            replace(NOWHERE, network=0, send_queue=100, socket=900),
        ),
        (replace(COUNTS, lost=0, socket_dropped=5), QUIET, QUIET, LossCauses(0, 0, 0, 0, 0, 0)),
        # A few are what switches send to everybody.
        (COUNTS, QUIET, replace(QUIET, nic_received=12), NOWHERE),
        (COUNTS, replace(QUIET, qdisc=12), QUIET, NOWHERE),
        (replace(COUNTS, socket_dropped=None), QUIET, QUIET, LossCauses(0, 0)),
        (replace(COUNTS, send_dropped=None), QUIET, QUIET, LossCauses(None, None, None, 0, 0, 0)),
        (replace(COUNTS, lost=None), QUIET, QUIET, LossCauses()),
    ],
)  # fmt: skip
def test_losses_are_at_the_kernel_that_dropped_packets_or_else_in_the_network(
    counts: LossCounts, sender: HostDrops | None, receiver: HostDrops | None, places: LossCauses
) -> None:
    """Within a second."""
    assert locate_losses(counts, sender, receiver, SECOND_NS) == places


@given(
    counts=st.builds(LossCounts, *[UNKNOWN_OR_COUNTS] * 3),
    sender=st.none() | st.builds(HostDrops, *[UNKNOWN_OR_COUNTS] * 8),
    receiver=st.none() | st.builds(HostDrops, *[UNKNOWN_OR_COUNTS] * 8),
)
def test_the_places_add_up_to_what_was_lost(
    counts: LossCounts, sender: HostDrops | None, receiver: HostDrops | None
) -> None:
    """For any reports of the hosts; and no place has a negative number."""
    places = locate_losses(counts, sender, receiver, SECOND_NS)
    known = [part for part in (places.sender, places.network, places.receiver) if part is not None]
    assert all(part >= 0 for part in known)
    assert sum(known) <= (counts.lost or 0)
    if len(known) == 3:
        assert sum(known) == counts.lost
    for sends in End:
        assert places.of_end(sends, sends) == places.sender
        assert places.of_end(sends.other, sends) == places.receiver
