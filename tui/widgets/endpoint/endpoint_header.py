"""The first lines of the endpoint's screen: where it listens, who may come, and whether it is open."""

from textual.content import Content

from ...rendering.styled_lines import LineWidget
from ...rendering.styles import KEY, MUTED
from ...state.endpoint import EndpointSnapshot
from ...text import numbers


class EndpointHeader(LineWidget):
    """Shows where an endpoint listens on the left, its state and how long it has been there on the right."""

    DEFAULT_CSS = """
    EndpointHeader { height: 2; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._served: EndpointSnapshot | None = None

    def show(self, served: EndpointSnapshot) -> None:
        """Show these values from the next frame on."""
        self._served = served
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Lay both lines out over the width there is; what stands on the right is never cut."""
        del height
        if self._served is None:
            return []
        lines = ((_where(self._served), _state(self._served)), (_who(self._served), _so_far(self._served, width)))
        return [_both(left, right, width) for left, right in lines]


def _both(left: Content, right: Content, width: int) -> Content:
    room = max(width - right.cell_length - 2, 0)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), "  ", right)


def _where(served: EndpointSnapshot) -> Content:
    facts = served.info
    return Content.assemble(
        ("linkgauge ", KEY),
        (" endpoint ", MUTED),
        (numbers.sanitize(facts.hostname), "bold"),
        ("  on ", MUTED),
        (facts.address, "bold"),
    )


def _who(served: EndpointSnapshot) -> Content:
    tls = "" if served.info.tls is None else "   control is TLS"
    return Content.assemble((numbers.sanitize(served.info.access_policy), ""), (tls, MUTED))


def _state(served: EndpointSnapshot) -> Content:
    if served.drain_left_ns is not None:
        return Content.assemble(
            ("◌ DRAINING", "bold $text-warning"), f" {numbers.clock(served.drain_left_ns)} left"
        )
    return Content.assemble(("● SERVING", "bold $text-success"), (f" {numbers.clock(served.uptime_ns)}", "bold"))


def _so_far(served: EndpointSnapshot, width: int) -> Content:
    totals = served.totals
    if not (totals.clients or totals.refused):
        return Content("")
    parts = [numbers.quantity(totals.runs, "run"), numbers.payload(totals.bytes)]
    if width >= 100:
        parts.insert(0, numbers.quantity(totals.clients, "client"))
        parts.append(f"{numbers.count(totals.refused)} turned away")
    elif totals.refused:
        parts.append(f"{numbers.count(totals.refused)} refused")
    return Content.styled(f"so far {', '.join(parts)}", MUTED)
