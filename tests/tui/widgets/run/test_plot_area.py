"""The middle of the cockpit: a problem with its remedy in place of the plot."""

from typing import Any

import pytest
from linkgauge.engine.model.errors import (
    PeerNotLinkgauge,
    PeerRefused,
    PeerUnreachable,
    PeerVersionMismatch,
)
from linkgauge.engine.model.peer import Peer

FAR = Peer("db-02")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize(
    "refusal",
    [
        PeerUnreachable("db-02:5820 cannot be reached: the name does not resolve"),
        PeerRefused("db-02:5820 declined: it serves 8 clients already"),
        PeerVersionMismatch("db-02:5820 speaks protocol 2, this is 1: use the same linkgauge at both ends"),
        PeerNotLinkgauge("db-02:5820 is no linkgauge endpoint: it said nothing for 5 s"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
async def test_an_unusable_far_end_is_shown_with_the_remedy(
    world: Any, size: tuple[int, int], refusal: Exception
) -> None:
    """The reason, the key that tries again, the key that goes elsewhere; and it goes on once it is back."""
    world.refusal = refusal
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.end()
        text = " ".join(cockpit.text().split())
        assert "NO FAR END" in cockpit.line(0)
        assert str(refusal)[:40] in text
        assert "try again" in text
        assert "connect to another peer" in text
        world.refusal = None
        await cockpit.press("r")
        await cockpit.end()
        assert "READY" in cockpit.line(0)
