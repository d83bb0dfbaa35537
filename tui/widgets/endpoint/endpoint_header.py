"""The first lines of the endpoint's screen: its address, access policy, state and totals."""

from textual.content import Content

from ...rendering.styled_lines import LineWidget
from ...rendering.styles import KEY, MUTED
from ...state.endpoint import EndpointSnapshot
from ...text import numbers


class EndpointHeader(LineWidget):
    """Shows address and access policy on the left, state, uptime and totals on the right."""

    DEFAULT_CSS = """
    EndpointHeader { height: 2; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._snapshot: EndpointSnapshot | None = None

    def show(self, snapshot: EndpointSnapshot) -> None:
        """Show these values."""
        self._snapshot = snapshot
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return both lines; the right side is never cut."""
        del height
        if self._snapshot is None:
            return []
        lines = (
            (_address(self._snapshot), _state(self._snapshot)),
            (_access(self._snapshot), _totals(self._snapshot, width)),
        )
        return [_two_sides(left, right, width) for left, right in lines]


def _two_sides(left: Content, right: Content, width: int) -> Content:
    room = max(width - right.cell_length - 2, 0)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), "  ", right)


def _address(snapshot: EndpointSnapshot) -> Content:
    info = snapshot.info
    return Content.assemble(
        ("linkgauge ", KEY),
        (" endpoint ", MUTED),
        (numbers.sanitize(info.hostname), "bold"),
        ("  on ", MUTED),
        (info.address, "bold"),
    )


def _access(snapshot: EndpointSnapshot) -> Content:
    tls = "" if snapshot.info.tls is None else "   control is TLS"
    return Content.assemble((numbers.sanitize(snapshot.info.access_policy), ""), (tls, MUTED))


def _state(snapshot: EndpointSnapshot) -> Content:
    if snapshot.drain_left_ns is not None:
        return Content.assemble(
            ("◌ DRAINING", "bold $text-warning"), f" {numbers.clock(snapshot.drain_left_ns)} left"
        )
    return Content.assemble(("● SERVING", "bold $text-success"), (f" {numbers.clock(snapshot.uptime_ns)}", "bold"))


def _totals(snapshot: EndpointSnapshot, width: int) -> Content:
    totals = snapshot.totals
    if not (totals.clients or totals.refused):
        return Content("")
    parts = [numbers.quantity(totals.runs, "run"), numbers.payload(totals.bytes)]
    if width >= 100:
        parts.insert(0, numbers.quantity(totals.clients, "client"))
        parts.append(f"{numbers.count(totals.refused)} turned away")
    elif totals.refused:
        parts.append(f"{numbers.count(totals.refused)} refused")
    return Content.styled(f"so far {', '.join(parts)}", MUTED)
