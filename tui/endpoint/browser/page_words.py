"""What a page shows of a test: a line for each interval, and the result, as values of JSON. Pure.

The endpoint's host is the local end of its runs. On the page, *down* is what its own device receives.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ....engine.browser.page_messages import WAYS
from ....engine.model.directions import Direction
from ....engine.results.responsiveness.result import Responsiveness
from ....presets.diagnosis.finding import Finding
from ....presets.preset import Preset
from ...session.run_recorder import Outcome
from ...words import numbers
from ...words.responsiveness import grade_text, round_trips_text, share_text
from ...words.summary import headline, tcp_text

_COMMAND: Final = re.compile(r"linkgauge|--[a-z]")
_NO_REMEDY: Final = {"at-expected", "no-queue"}


def interval_values(line: dict[str, Any]) -> dict[str, Any]:
    """Return what a page shows of an interval; `line` is its object in the JSON stream."""
    flow: dict[str, Any] = line["out"] or line["in"] or {}
    latency_us = flow.get("latency_p50_us")
    return {
        "elapsed_s": line["elapsed_s"],
        "warmup": line["warmup"],
        "latency_ms": None if latency_us is None else latency_us / 1_000,
        **{way: _flow(line[direction]) for direction, way in WAYS.items() if direction is not Direction.DUPLEX},
    }


def _flow(flow: dict[str, Any] | None) -> dict[str, Any] | None:
    if flow is None:
        return None
    return {"mbit_s": flow["mbit_s"], "percent": flow["percent_of_expected"]}


def expected_values(line: dict[str, Any]) -> dict[str, float | None]:
    """Return the expected rates in Mb/s; `line` is the first object of a run in the JSON stream."""
    expected = line["expected"]
    return {
        way: None if (rate := expected[direction]) is None else rate["mbit_s"]
        for direction, way in (("out", "down"), ("in", "up"))
    }


def result_values(outcome: Outcome, notices: Iterable[str], *, is_saved: bool) -> dict[str, Any]:
    """Return what a page shows of the result, and of the notices before it. A run that is not saved has no id."""
    summary = outcome.summary
    first = headline(summary, outcome.verdict)
    return {
        "run_id": outcome.run_id if is_saved else None,
        "preset": outcome.preset_id,
        "word": first.word if first.is_regular else "fault",
        "mark": first.mark,
        "text": first.text,
        "rates": list(_rates(outcome)),
        "facts": list(_facts(outcome)),
        "why": [_finding(finding) for finding in outcome.findings],
        "notices": [notice_text(text) for text in notices],
        "notes": [numbers.sanitize(text) for text in summary.warnings],
    }


def _rates(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for direction, measured in outcome.summary.measurements:
        margin = None if measured.estimate is None else measured.estimate.half_width_percent
        yield {
            "way": WAYS[direction],
            "text": numbers.rate(measured.bit_s),
            "margin": numbers.margin_of_error(margin),
            "bytes": numbers.payload(measured.bytes),
        }


def _facts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    found = outcome.summary.responsiveness
    if found is not None:
        yield from _latency(found)
    yield "TCP", tcp_text(outcome.summary)


def _latency(found: Responsiveness) -> Iterator[tuple[str, str]]:
    if found.idle is not None:
        yield "idle latency", numbers.latency(found.idle.p50_ns)
    for load in found.loads:
        if load.latency is not None:
            yield (
                "under load",
                f"{numbers.latency(load.latency.p50_ns)}, p99 {numbers.latency(load.latency.p99_ns)}",
            )
    yield "grade", grade_text(found)
    if found.round_trips is not None:  # unknown if only the device sends: its kernel has the round trips
        yield "round trips", round_trips_text(found.round_trips)


def _finding(finding: Finding) -> dict[str, str]:
    """Return a finding; a remedy that only a command of linkgauge carries out is of no use on a phone."""
    remedy = "" if finding.code in _NO_REMEDY or _COMMAND.search(finding.remedy) else finding.remedy
    texts = {"text": finding.text, "evidence": finding.evidence, "remedy": remedy}
    return {"share": share_text(finding), **{name: numbers.sanitize(text) for name, text in texts.items()}}


def notice_text(text: str) -> str:
    """Return a notice without the parts that name a command or an option of linkgauge: a page has neither."""
    return "; ".join(part for part in text.split("; ") if not _COMMAND.search(part)) or text


def preset_choice(preset: Preset) -> dict[str, str]:
    """Return a preset as a page offers it, with its Japanese name if it has one."""
    return {"id": preset.id, "name": preset.name, "name_ja": preset.name_ja or preset.name}
