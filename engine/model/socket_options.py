"""The socket options of a run's data connections. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from .errors import PlanError
from .peer import check_zone

MIN_MSS_BYTES: Final = 88  # TCP_MIN_MSS of Linux
MAX_MSS_BYTES: Final = 32_767  # MAX_TCP_WINDOW of Linux
_CONGESTION_NAME: Final = re.compile(r"[a-z0-9_]{1,15}", re.ASCII)  # TCP_CA_NAME_MAX is 16, tcp(7)


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The socket options of every data connection, at both ends; None leaves an option to the kernel.

    `congestion` names a congestion control, `mss_bytes` is TCP_MAXSEG, `nodelay` TCP_NODELAY (tcp(7)); `dscp` is
    the six bits of RFC 2474. `source` and `device` bind the near end's side to an address and an interface.
    """

    congestion: str | None = None
    mss_bytes: int | None = None
    dscp: int | None = None
    nodelay: bool = False
    source: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        name = self.congestion
        if name is not None and not _CONGESTION_NAME.fullmatch(name):
            raise PlanError("congestion control", repr(name), "give a name such as cubic, reno or bbr (tcp(7))")
        if self.mss_bytes is not None and not MIN_MSS_BYTES <= self.mss_bytes <= MAX_MSS_BYTES:
            raise PlanError("MSS", self.mss_bytes, f"give {MIN_MSS_BYTES} to {MAX_MSS_BYTES} bytes")
        if self.dscp is not None and not 0 <= self.dscp <= 63:
            raise PlanError("DSCP", self.dscp, "give 0 to 63 (RFC 2474)")
        for name, text in (("source", self.source), ("device", self.device)):
            if text is not None and not (0 < len(text) <= 64 and text.isprintable() and " " not in text):
                raise PlanError(
                    name, repr(text), f"give the {'address' if name == 'source' else 'name'} of an interface"
                )
        if self.source is not None:
            check_zone("source", self.source)
