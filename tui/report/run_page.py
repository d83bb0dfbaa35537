"""A report: runs as one HTML page that needs nothing but itself."""

from collections.abc import Sequence
from typing import Final

from ... import __version__
from ...engine.model.plan import Mode
from ...engine.results.run_log import RunRecord
from ...engine.results.summary import Summary
from ..interfaces import History
from ..services.run_comparison import LETTERS, SIGNIFICANCE_MARKS, compare_stored_runs
from ..services.stored_run import StoredRun, load_stored_run
from ..text import numbers
from ..text.run_list import run_line
from . import run_plots as plots
from . import tables
from .html import Content, Markup, element, join, markup, section
from .style import STYLE
from .traces import Traces

MAX_RUNS: Final = len(LETTERS)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_ALWAYS: Final = (
    "Rates are payload: what the receiving application got between two readings of the receiver's clock.",
    "Mb is 1 000 000 bits, MiB 1 048 576 bytes; – is unknown, 0 was measured.",
    "The warm-up is drawn and not counted; neither is what settles after a change, nor the drain at the end.",
    "± is half of the 95 % confidence interval of the mean under one setting: of this run, not of another hour.",
)
_EXPECTED: Final = (
    "An expected rate is documented (in the source that is named) or computed (what the wire's framing and headers "
    "leave for payload). A pass is at least 95 % of it, or the mark that was given."
)
_MODES: Final = {
    Mode.COPY: "Payload was random bytes, copied into and out of the kernel as by any application.",
    Mode.SENDFILE: "Payload was sent from the page cache (sendfile), which spares the sender a copy.",
    Mode.DISCARD: "The receiving kernel dropped the payload unread, so the receiver was spared a copy.",
}


def render_report(history: History, rows: Sequence[RunRecord]) -> str:
    """Return the page of these runs; of several, first how they differ. Raises StoreError for a damaged one."""
    read: list[tuple[StoredRun, Traces]] = []
    for row in rows:
        traces = Traces()
        read.append((load_stored_run(history, row, [traces]), traces))
    parts: list[Content] = []
    if len(read) > 1:
        parts.append(_comparison([run for run, _ in read]))
    for number, (run, traces) in enumerate(read):
        parts.append(_run(run, traces, LETTERS[number] if len(read) > 1 else ""))
    title = run_line(rows[0]).label or rows[0].run_id if len(rows) == 1 else numbers.quantity(len(rows), "run")
    head = join(
        (
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            # Nothing is fetched and nothing is run, whatever a text in the page may be.
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            element("title", f"linkgauge: {title}"),
            element("style", Markup(STYLE)),
        )
    )
    top = element("header", element("strong", "linkgauge"), element("span", f"report, linkgauge {__version__}"))
    page = element("body", top, element("main", *parts))
    return f'<!DOCTYPE html>\n<html lang="en">\n{markup(element("head", head))}\n{markup(page)}\n</html>\n'


def _run(run: StoredRun, traces: Traces, letter: str) -> Markup:
    summary, line = run.outcome.summary, run_line(run.row)
    name = line.label or f"{line.preset or 'no preset'} to {line.peer}"
    under = f"{line.when} UTC, run {line.run_id}" if line.started_utc else f"run {line.run_id}"
    drawn = bool(run.readings.elapsed_ns)
    has_latency = drawn and bool(traces.latency)
    return element(
        "article",
        element("h2", f"{letter}  {name}".strip()),
        element("p", under, css_class="sub"),
        _verdict(run),
        section("Measured against expected", tables.rates(summary), tables.periods(summary)),
        section("Why it is not faster", tables.findings(run.outcome.findings)),
        section("Throughput", _figure(plots.throughput(run)) if drawn else None),
        section("Latency", tables.latencies(summary), _figure(plots.latency(run, traces)) if has_latency else None),
        section("CPU", _figure(plots.cpu(run, traces)) if any(traces.cpu.values()) else None, tables.cpu(summary)),
        section(
            "Sessions", tables.sessions(traces), element("p", f"TCP: {tables.tcp(summary.tcp)}.", css_class="small")
        ),
        section("What to know", _warnings(summary), css_class="warning"),
        section("The test", tables.run_details(run)),
        section("How it was measured", _method(summary)),
        css_class="run",
    )


def _verdict(run: StoredRun) -> Markup:
    verdict, end = run.outcome.verdict, run.outcome.summary.end
    said = numbers.sanitize(verdict.text.removeprefix(f"{verdict.word.upper()}: "))
    word = numbers.verdict(verdict.word) if end.reason.is_regular else f"✗ {numbers.reason(end.reason).upper()}"
    return element(
        "div", element("b", word), element("p", said[:1].upper() + said[1:]), css_class=f"verdict {verdict.word}"
    )


def _figure(svg: str) -> Markup:
    return element("figure", Markup(svg))


def _warnings(summary: Summary) -> Markup | None:
    if not summary.warnings:
        return None
    return element("ul", *(element("li", numbers.sanitize(warning)) for warning in summary.warnings))


def _method(summary: Summary) -> Markup:
    told: list[str] = [*_ALWAYS]
    mode = summary.tcp.mode
    if mode is not None:
        told.append(_MODES[mode])
    if summary.expectation.out or summary.expectation.in_ or summary.expectation.total:
        told.append(_EXPECTED)
    return element("ul", *(element("li", one) for one in told), css_class="small")


def _comparison(runs: Sequence[StoredRun]) -> Markup:
    letters = LETTERS[: len(runs)]
    legend = [
        element("li", element("b", f"{letter}  "), _words_of(run))
        for letter, run in zip(letters, runs, strict=True)
    ]
    real, alike = SIGNIFICANCE_MARKS["real"], SIGNIFICANCE_MARKS["alike"]
    marks = f"{real} a real difference, {alike} none that these runs can show, "
    return element(
        "article",
        element("h2", f"{numbers.quantity(len(runs), 'run')} beside each other"),
        element("ul", *legend),
        _figure(plots.overlay(list(zip(letters, runs, strict=True)))),
        tables.differences(letters, compare_stored_runs(runs)),
        element(
            "p",
            f"{marks}{SIGNIFICANCE_MARKS['plain']} without an interval. Each is a statement at 95 %.",
            css_class="small",
        ),
        css_class="compare",
    )


def _words_of(run: StoredRun) -> str:
    line = run_line(run.row)
    unit = "" if line.transactions_s is not None else f"{numbers.NBSP}Mb/s"
    named = f"{line.label}: " if line.label else ""
    where = f"{line.preset or 'no preset'} to {line.peer}, {line.test}"
    return f"{named}{line.rate}{unit}, {line.verdict_words}, {where}, {line.when} UTC"
