"""A watch in lines: its head, its activity, the details of the peer at the cursor. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from textual.content import Content

from ...presets.diagnosis.finding_words import why_words
from ...watch.events import ChangeFound, CheckEnded
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import BAD, GOOD, KEY, MUTED, SHORT
from ..words import numbers
from .last_day import BETTER, NO_RESULT, STATE_STYLES, WORSE
from .watch_view import PeerRow, PeerState, WatchView, current_levels, newest_failures
from .watch_words import (
    METRIC_NAMES,
    at_words,
    budget_words,
    change_parts,
    level_words,
    next_words,
    path_change_words,
    plan_words,
    result_words,
    verdict_words,
)

_MAX_CHANGES: Final = 20
_PATH_CHANGED: Final = "◆"
_MAX_FAILURES: Final = 5
_SHOWN_PEERS: Final = 3
_COUNTED: Final = {
    PeerState.FAIL: "✗ FAIL",
    PeerState.SHORT: "▼ SHORT",
    PeerState.NO_RESULT: "! no result",
    PeerState.PASS: "✓ PASS",
    PeerState.MEASURED: "• measured",
    PeerState.WAITING: "not tested yet",
}


def head_line(view: WatchView, width: int) -> Content:
    """Return the line with the name, the number of peers, the month's data and the time."""
    peers = numbers.quantity(len(view.rows), "peer")
    data = f"{budget_words(view.month_bytes, view.budget_bytes)} this month"
    time = f"{datetime.fromtimestamp(view.now_s, UTC):%H:%M} UTC"
    product, kind = Content.styled("linkgauge  ", KEY), Content.styled("watch ", "bold")
    if view.is_elsewhere:
        peers = f"followed, {peers}"
    name = Content.styled(f"{view.name}  ", "bold")
    return first_fit(
        width,
        Content.assemble(product, kind, name, f"{peers}, {data}  ", (time, MUTED)),
        Content.assemble(kind, name, f"{peers}, {data}  ", (time, MUTED)),
        Content.assemble(kind, name, f"{peers}  ", (time, MUTED)),
        Content.assemble(kind, peers, "  ", (time, MUTED)),
        Content.assemble(kind, peers),
    )


def status_line(view: WatchView) -> Content:
    """Return the line with the test that runs now or comes next, and the number of peers at each verdict."""
    if view.problem is not None:
        return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(view.problem))
    counts = "   ".join(
        f"{view.counts[state]} {word}" for state, word in _COUNTED.items() if view.counts.get(state)
    )
    mark, words = _activity(view)
    return Content.assemble(mark, (words, "bold"), (f"   {counts}", MUTED))


def peer_lines(row: PeerRow) -> list[Content]:
    """Return the details of a peer: its last test, its levels, its changes, its failures."""
    status, last = row.status, row.status.last_check
    lines = [Content.assemble((row.name, "bold"), (f"   {plan_words(row.watched)}", MUTED))]
    if last is None:
        lines.append(Content.styled(f"No test yet; the first one: {next_words(status, row.now_s)}", MUTED))
    else:
        lines.append(_last_line(row, last))
    levels = "   ".join(
        f"{METRIC_NAMES[metric]} {level_words(metric, level, is_transactions=row.is_transactions)}"
        for metric, level in current_levels(status)
    )
    if levels:
        lines.append(Content.assemble(("level    ", MUTED), levels))
    if sum(status.checks):
        lines.append(Content.assemble(("tests    ", MUTED), _tests(row)))
    if row.is_over_budget:
        data = budget_words(row.month_bytes, row.watched.budget_bytes)
        lines.append(Content.styled(f"▲ this month's data is used up: {data}; tests are skipped", SHORT))
    lines += _change_lines(row)
    lines += _failure_lines(row)
    return lines


def _activity(view: WatchView) -> tuple[tuple[str, str], str]:
    if view.is_over:
        return ("■ ", MUTED), "the watch has ended"
    if view.is_stopping:
        return ("● ", "$text-warning"), "ending: a test in progress is stopped first"
    if view.testing:
        names = [row.name for row in view.testing[:_SHOWN_PEERS]]
        more = len(view.testing) - len(names)
        return ("● ", "$text-success"), f"testing {', '.join([*names, *([f'{more} more'] if more else [])])}"
    if view.next_row is not None:
        return ("○ ", MUTED), f"next test: {view.next_row.name} {next_words(view.next_row.status, view.now_s)}"
    return ("○ ", MUTED), "no test is due"


def _last_line(row: PeerRow, last: CheckEnded) -> Content:
    result = last.result
    why = "" if result.why is None else f": {why_words(result.why)}"
    return Content.assemble(
        ("last     ", MUTED),
        (verdict_words(result), f"bold {STATE_STYLES[row.state]}"),
        (f" at {at_words(last.at_s, row.now_s)}   ", MUTED),
        f"{result_words(result, is_transactions=row.is_transactions)}{why}",
    )


def _tests(row: PeerRow) -> str:
    good, below, failed = row.status.checks
    parts = [
        numbers.quantity(good + below + failed, "test"),
        f"{numbers.count(below)} below the mark",
        f"{numbers.count(failed)} without a result",
    ]
    if row.status.retests:
        parts.append(f"{numbers.quantity(row.status.retests, 'repetition')}")
    if row.status.missed:
        parts.append(f"{numbers.count(row.status.missed)} missed")
    if row.status.flaps:
        parts.append(f"{numbers.quantity(row.status.flaps, 'flap')}")
    return ", ".join(parts)


def _change_lines(row: PeerRow) -> Iterator[Content]:
    changes = row.status.changes[::-1][:_MAX_CHANGES]
    for change, count in row.status.path_changes.values():
        times = "" if count == 1 else f" ({count} times in all)"
        text = f"{path_change_words(change)}, at {at_words(change.at_s, row.now_s)}{times}"
        yield Content.assemble((f"{_PATH_CHANGED} ", f"bold {SHORT}"), (text, "bold"))
    if not changes and row.status.last_check is not None:
        yield Content.styled("No change of a level.", MUTED)
    for change in changes:
        parts = change_parts(change, row.now_s, is_transactions=row.is_transactions)
        yield Content.assemble(_change_mark(change), (parts.headline, "bold"))
        yield Content.assemble(("  before  ", MUTED), parts.before)
        yield Content.assemble(("  after   ", MUTED), parts.after)


def _change_mark(change: ChangeFound) -> tuple[str, str]:
    return (f"{WORSE} ", f"bold {SHORT}") if change.is_worse else (f"{BETTER} ", f"bold {GOOD}")


def _failure_lines(row: PeerRow) -> Iterator[Content]:
    for failure in newest_failures(row.status, _MAX_FAILURES):
        kind = "test" if isinstance(failure, CheckEnded) else "probe"
        words = result_words(failure.result)
        yield Content.assemble(
            (f"{NO_RESULT} ", f"bold {BAD}"), f"{kind} at {at_words(failure.at_s, row.now_s)}: {words}"
        )
