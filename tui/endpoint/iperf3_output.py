"""The results that an endpoint sends to the client of an iperf3 test: lines of text, or the document of `--json`.

`iperf3 --get-server-output` prints the lines as they are, so they are ASCII for any terminal. In these lines the
client is the local host.
"""

import random
import re
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from ...engine.model.directions import Direction, End
from ...engine.model.events import Ended, Event, Started
from ...engine.results.figure_codec import encode
from ...engine.results.meter import Meter
from ...engine.results.run_log import new_run_id
from ...engine.results.run_result import RunResult
from ...engine.results.summary import DatagramSummary, Summary
from ...presets.diagnosis.finding import Finding, finding_figures
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.verdict import judge
from ..words import numbers
from ..words.datagram_results import loss_percent, single_directions, udp_text
from ..words.iperf3 import source_texts
from ..words.summary import (
    cpu_table,
    other_tests_text,
    plan_text,
    rate_scale,
    tcp_text,
    warmup_text,
)

_RANDOM: Final = random.SystemRandom()
WIDTH: Final = 80
_NAME_WIDTH: Final = 9
_ASCII: Final = str.maketrans({
    "±": "+-", "µ": "u", "→": "->", "←": "<-", "⇄": "<->", "↔": "<->", "–": "-", "—": "-", "×": "x", "≥": ">=",
    "≤": "<=", "≈": "~", "…": "...", "’": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202f": " ",
})  # fmt: skip


# The options of linkgauge that a remedy names, and those of iperf3.
_IPERF3_OPTIONS: Final = (
    ("linkgauge …", "iperf3 ..."),
    ("--window auto", "without -w"),
    ("--window", "-w"),
    ("--sessions", "-P"),
    ("--congestion", "-C"),
    ("--mode sendfile", "-Z"),
    ("--mode discard", "-skip-rx-copy"),
    ("--datagram", "-l"),
)
_LINKGAUGE_ONLY: Final = re.compile(r"linkgauge|--[a-z]")
_FLOW_WORDS: Final = {
    Direction.OUT: " from client to server",
    Direction.IN: " from server to client",
    Direction.DUPLEX: "",
}


class Iperf3Output:
    """Takes the events of one test, whose near end is the client, and returns its results and its diagnosis.

    There is no expected rate: the server does not know the client's link. `as_json` chooses the document.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._diagnosis = LiveDiagnosis(Meter(), without_target=True)
        self._meter = self._diagnosis.meter

    def take(self, event: Event) -> str | dict[str, Any] | None:
        """Take the next event; return the output for the client with the last one, `Ended`."""
        self._meter.feed(event)
        if not isinstance(event, Ended):
            return None
        self._meter.flush()
        if self._as_json:
            return self._document()
        return server_output(self._meter.summary(), self._meter.started, self._findings)

    def _document(self) -> dict[str, Any]:
        """Return the document of `--json`, with an id of its own."""
        run_id = new_run_id(datetime.now(UTC), _RANDOM)
        summary, findings = self._meter.summary(), finding_figures(self._findings)
        verdict = judge(summary)
        words = [period.word for period in verdict.periods]
        result = RunResult.of_run(summary, verdicts=words, run_id=run_id, verdict=verdict.word, findings=findings)
        return encode(result)

    @property
    def _findings(self) -> tuple[Finding, ...]:
        reason = self._meter.summary().end.reason
        return () if reason.is_fault else self._diagnosis.final_findings


def server_output(summary: Summary, started: Started | None, findings: tuple[Finding, ...]) -> str:
    """Return the lines of a test: its rates, its losses, and why it was not faster.

    Args:
        summary: The results; the client is the near end.
        started: The event with the names of both ends; None if the test did not start.
        findings: The reasons, the most important one first.
    """
    return "".join(f"{line}\n" for name, text in _rows(summary, started, findings) for line in _lines(name, text))


def _lines(name: str, text: str) -> list[str]:
    plain = numbers.sanitize(text).translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return textwrap.wrap(
        plain,
        WIDTH,
        initial_indent=f"{name:<{_NAME_WIDTH}}",
        subsequent_indent=" " * _NAME_WIDTH,
        break_on_hyphens=False,
    )


def _rows(summary: Summary, started: Started | None, findings: tuple[Finding, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each row."""
    if started is not None:
        yield "server", f"{started.far.program} on {started.far.hostname}, for {started.near.hostname}"
    yield "test", f"{plan_text(summary)} (warm-up {warmup_text(summary)})"
    if summary.measured.total is None:
        yield "result", "nothing was measured after the warm-up"
    else:
        yield from _rates(summary)
        _, host, busiest, _, cost = cpu_table(summary).rows[1 if summary.unseen_end is End.NEAR else 0]
        yield "cpu", f"this server: {host} of all cores, busiest core {busiest}, {cost}"
    if summary.plan.workload.is_datagram:
        yield "udp", udp_text(summary)
    else:
        yield "tcp", tcp_text(summary)
    if others := other_tests_text(summary):
        yield "others", others
    yield from (("note", warning) for warning in summary.warnings)
    if findings:
        yield "why", "(local: the client, remote: this server)"
    for finding in findings:
        yield "", finding.text
        yield "", finding.evidence
        remedy = iperf3_remedy(finding.remedy)
        if remedy and finding.code != "at-expected":
            yield "", f"try: {remedy}"


def iperf3_remedy(remedy: str) -> str:
    """Return a remedy with the options of iperf3; "" if only linkgauge can carry it out."""
    for option, same in _IPERF3_OPTIONS:
        remedy = remedy.replace(option, same)
    if _LINKGAUGE_ONLY.search(remedy):
        return ""
    return remedy.replace("-skip-rx-copy", "--skip-rx-copy")


def _rates(summary: Summary) -> Iterator[tuple[str, str]]:
    scale = rate_scale(summary)
    for direction, measured in summary.measurements:
        margin = numbers.margin_of_error(
            None if measured.estimate is None else measured.estimate.half_width_percent
        )
        rate = f"{scale.number(measured.bit_s)} {scale.unit} {margin}".rstrip()
        yield numbers.row_name(direction), f"{rate}{_FLOW_WORDS[direction]}, {numbers.payload(measured.bytes)}"
    yield from (("", text) for text in source_texts(summary))
    for direction, measured in summary.measurements:
        if measured.datagrams is not None and direction is not Direction.DUPLEX:
            packets = f"{numbers.number(measured.packets_s)} packets/s"
            yield numbers.row_name(direction), f"{packets}, {_loss_words(measured.datagrams)}"
    for direction, counted in single_directions(summary):
        most = "" if counted.jitter_max_ns is None else f", {numbers.latency(counted.jitter_max_ns)} at most"
        yield numbers.row_name(direction), f"jitter {numbers.latency(counted.jitter_mean_ns)}{most}"


def _loss_words(counted: DatagramSummary) -> str:
    lost = f"{numbers.count(counted.lost)} lost ({loss_percent(counted.lost_percent)})"
    reordered = "" if counted.reordered is None else f", {numbers.count(counted.reordered)} reordered"
    return f"{numbers.count(counted.sent)} sent, {lost}{reordered}"
