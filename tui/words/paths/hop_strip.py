"""A path as a strip of hops between the two ends, the local end on the left: its values, and as text. Pure.

Every place that draws the strip draws these nodes and links: the command line, the screen and the page.
"""

from dataclasses import dataclass
from typing import Final

from ....engine.model.directions import Direction
from ....engine.results.path.path_result import HopResult, Place, Way
from .. import numbers
from ..responsiveness import rise

QUEUE_MARK: Final = "▓"
LOSS_MARK: Final = "╳"
_LINK: Final = "──"
_UNANSWERED: Final = "┄┄"


@dataclass(frozen=True, slots=True)
class StripNode:
    """One end or one hop. `hop` has its figures; the end that traces has none."""

    name: str
    hop: HopResult | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it is a hop that has not answered."""
        return self.hop is not None and self.hop.is_silent

    @property
    def idle(self) -> str:
        """The round trip without load; empty at the end that traces."""
        return "" if self.hop is None else numbers.latency(self.hop.idle_ns)

    @property
    def loaded(self) -> str:
        """The round trip under load; empty at the end that traces."""
        return "" if self.hop is None else numbers.latency(self.hop.loaded_ns)


@dataclass(frozen=True, slots=True)
class StripLink:
    """The link between two nodes, and what is at it.

    A queue or a loss between two hops may be at each link between them, if silent hops do not tell; `text` has its
    size, and is empty but at one of these links.
    """

    has_queue: bool = False
    has_loss: bool = False
    is_unanswered: bool = False
    text: str = ""

    @property
    def mark(self) -> str:
        """The character on both sides of the text; empty for a link without anything."""
        return QUEUE_MARK if self.has_queue else LOSS_MARK if self.has_loss else ""


@dataclass(frozen=True, slots=True)
class HopStrip:
    """The nodes from the local end to the remote one, and the link behind each but the last."""

    nodes: tuple[StripNode, ...]
    links: tuple[StripLink, ...]


def way_strip(way: Way) -> HopStrip:
    """Return the strip of a direction."""
    sender = way.sender
    nodes = [StripNode(sender.label)]
    links: list[StripLink] = []
    for hop in way.hops:
        links.append(_link(way, hop.ttl))
        nodes.append(StripNode(sender.other.label if hop.is_end else _hop_name(hop), hop))
    if not way.is_reached:
        links.append(StripLink(is_unanswered=True))
        nodes.append(StripNode(sender.other.label))
    if way.direction is Direction.IN:
        nodes, links = nodes[::-1], links[::-1]
    return HopStrip(tuple(nodes), tuple(links))


def _hop_name(hop: HopResult) -> str:
    return f"({hop.ttl})" if hop.is_silent else str(hop.ttl)


def _link(way: Way, before_ttl: int) -> StripLink:
    """Return the link before a hop."""
    queues = [queue for queue in way.queues if _covers(queue, before_ttl)]
    loss = way.loss
    lost = loss if loss is not None and loss.is_located and _covers(loss, before_ttl) else None
    texts = [rise(queue.rise_ns) for queue in queues if queue.before_ttl == before_ttl]
    if lost is not None and lost.before_ttl == before_ttl:
        texts.append(numbers.percent(lost.lost_percent) + (" lost" if queues else ""))
    return StripLink(bool(queues), lost is not None, text=", ".join(texts))


def _covers(place: Place, before_ttl: int) -> bool:
    return place.after_ttl < before_ttl <= place.before_ttl


def strip_text(strip: HopStrip) -> str:
    """Return a strip in a line: `local ── 1 ── 2 ▓ +41 ms ▓ 3 ── remote`.

    A silent hop in the middle of a place is left out: the mark stands for it.
    """
    parts = [strip.nodes[0].name]
    text = ""
    for number, link in enumerate(strip.links):
        node, after = strip.nodes[number + 1], strip.links[number + 1 : number + 2]
        text = text or link.text
        if node.is_silent and link.mark and after and after[0].mark == link.mark:
            continue
        parts += [_link_text(link, text), node.name]
        text = ""
    return " ".join(parts)


def _link_text(link: StripLink, text: str) -> str:
    if link.is_unanswered:
        return _UNANSWERED
    if not link.mark:
        return _LINK
    return f"{link.mark} {text} {link.mark}" if text else link.mark * len(_LINK)
