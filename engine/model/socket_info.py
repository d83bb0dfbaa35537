"""The socket options that the kernel granted a session. Pure; workers need no other sample and import only this."""

from dataclasses import dataclass

from .plan import Direction, End, Mode


@dataclass(frozen=True, slots=True)
class SocketInfo:
    """The socket options of a session at one end, read back from the kernel after it was opened.

    `window_granted_bytes` is the receive buffer at the receiving end and the send buffer at the sending
    one, as an application may use it (Linux reports twice that, socket(7)); None where the window is auto.
    `mode` is how this end moves payload.
    """

    end: End
    direction: Direction
    session: int
    congestion: str | None
    window_granted_bytes: int | None
    mss_bytes: int | None
    timestamps: bool | None
    sack: bool | None
    window_scaling: bool | None
    mode: Mode = Mode.COPY
