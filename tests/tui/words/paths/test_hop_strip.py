"""The strip of a path: its nodes, its links, and what is drawn at them."""

from dataclasses import replace

from linkgauge.engine.results.path.path_result import LossPlace, QueuePlace, Way
from linkgauge.tui.words.paths.hop_strip import strip_text, way_strip

from ...example_path import FIRST, IN, LAST, MS, OUT, SILENT, THIRD, plain


def text(way: Way) -> str:
    """Return the strip of a direction as a line."""
    return plain(strip_text(way_strip(way)))


def test_the_strip_draws_the_queue_at_its_hop_with_the_local_end_on_the_left() -> None:
    """A silent hop is in brackets; the way in is read from the right."""
    assert text(OUT) == "local ── 1 ── (2) ▓ +41.0 ms ▓ 3 ── remote"
    assert text(IN) == "local ── 3 ▓ +41.0 ms ▓ (2) ── 1 ── remote"
    between = replace(OUT, queues=(QueuePlace(1, 3, 41 * MS, 1.0),))
    assert text(between) == "local ── 1 ▓ +41.0 ms ▓ 3 ── remote"
    lossy = replace(OUT, queues=(), loss=LossPlace(0, 1, 12.5, True), is_reached=False, hops=(FIRST,))
    assert text(lossy) == "local ╳ 12.5 % ╳ 1 ┄┄ remote"


def test_a_silent_hop_between_is_silent_and_each_of_its_links_may_have_the_queue() -> None:
    """The size stands at one of them."""
    strip = way_strip(replace(OUT, queues=(QueuePlace(1, 3, 41 * MS, 1.0),)))
    assert [node.name for node in strip.nodes] == ["local", "1", "(2)", "3", "remote"]
    assert [(link.mark, plain(link.text)) for link in strip.links] == [
        ("", ""),
        ("▓", ""),
        ("▓", "+41.0 ms"),
        ("", ""),
    ]
    assert [plain(node.idle) for node in strip.nodes] == ["", "150 µs", "–", "200 µs", "300 µs"]
    assert [plain(node.loaded) for node in strip.nodes] == ["", "180 µs", "–", "41.0 ms", "41.0 ms"]


def test_a_hop_that_answers_late_does_not_hide_that_the_queue_may_be_before_it() -> None:
    """It is drawn, as it answers."""
    late = replace(SILENT, routers=("10.0.3.1",), answers="slow")
    way = replace(OUT, hops=(FIRST, late, THIRD, LAST), queues=(QueuePlace(1, 3, 41 * MS, 1.0),))
    assert text(way) == "local ── 1 ▓▓ 2 ▓ +41.0 ms ▓ 3 ── remote"


def test_a_queue_that_also_loses_has_both_figures() -> None:
    """A full queue drops."""
    assert text(replace(OUT, loss=LossPlace(2, 3, 12.5, True))) == (
        "local ── 1 ── (2) ▓ +41.0 ms, 12.5 % lost ▓ 3 ── remote"
    )
    assert text(replace(OUT, loss=LossPlace(0, 4, 12.5, False))) == text(OUT)
