"""What an app that waits for a device shows of it: the way to join, the device, and the news. Pure."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from ...engine.model.peer import AWAITED_BROWSER, Peer

_AWAITED: Final = "a device that joins"


@dataclass(frozen=True, slots=True)
class WaitedDevice:
    """The device of an app at one moment.

    `link` opens the page, and `page_code` has it with the code, as lines of a QR code. `code` is for the next
    device that joins. `peer` is the device that takes part, and `name` its browser; None and empty without one.
    `news` is a sentence for the user about the latest event, and `is_problem` whether something went wrong.
    `fingerprint` is that of the page's certificate; empty for plain HTTP.
    """

    link: str
    code: str
    page_code: tuple[str, ...]
    peer: Peer | None = None
    name: str = ""
    news: str = ""
    is_problem: bool = False
    fingerprint: str = ""

    @property
    def code_text(self) -> str:
        """The code in two groups, as it is read aloud."""
        middle = len(self.code) // 2
        return f"{self.code[:middle]} {self.code[middle:]}"


def far_end_text(peer: Peer) -> str:
    """Return a far end as the cockpit names it: its address, `loopback`, or that a device has still to join."""
    if peer == AWAITED_BROWSER:
        return _AWAITED
    return peer.shown


FollowDevice = Callable[[], AsyncGenerator[WaitedDevice]]
"""Yields the device at this moment, and again at each change."""
