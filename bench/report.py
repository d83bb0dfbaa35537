"""The report of a benchmark: tables in Markdown, rows in CSV, and a picture of the ratios."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from comparison import SHARE, Comparison, Ranking, compare_case, rank
from measurements import CaseResult, EntryResult, Results, known
from tools import DATAGRAMS, TRANSACTIONS

_GIGABIT = 1_000_000_000
REQUESTED_WITHIN = 0.005  # of the rate that a sender of datagrams is to keep
_OURS, _THEIRS = "#2563a8", "#b4543a"
_HEADER = (
    "| case | linkgauge | against | rate of both | ratio (95 %) | target | its CPU | target | of the floor |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
_SHORT_HEADER = (
    "| case | linkgauge | the strongest peer | rate of both | ratio (95 %) | its CPU |\n"
    "| --- | --- | --- | --- | --- | --- |"
)
_DATAGRAM_HEADER = (
    "### Datagrams: the limit of each sender, and what was lost\n"
    "| case | | limited to | received | lost |\n| --- | --- | --- | --- | --- |"
)
_REQUESTED_HEADER = (
    "### Datagrams: the rate that is requested, and that of linkgauge's sender\n"
    "| requested | | sent | difference | target | left out, because late |\n| --- | --- | --- | --- | --- | --- |"
)
_FLOOR_HEADER = "### The floor: the fewest system calls in Python\n| case | | rate |\n| --- | --- | --- |"


def rank_results(results: Results) -> Ranking:
    """Compare every case, and put the comparisons in order."""
    return rank(comparison for case in results.cases for comparison in compare_case(case))


def report_text(results: Results) -> str:
    """Return the whole report in Markdown, what is behind a peer first. Headings begin at the third level."""
    ranking = rank_results(results)
    blocks = [
        *_about(results),
        *_failures(results),
        *_section("Where linkgauge is behind a peer", ranking.behind),
        *_section("Where linkgauge is short of a target, but not behind a peer", ranking.short),
        *_section("Where linkgauge is as fast or faster, within its targets", ranking.ahead),
        *_section("linkgauge with other options or in other states", ranking.itself),
        *_datagrams(results.cases),
        *_requested(results.cases),
        *_drawing(results.cases),
        *_floors(results),
    ]
    return "\n\n".join(blocks) + "\n"


def summary_text(results: Results) -> str:
    """Return a short table in Markdown: the peer of each case that comes out best."""
    strongest: dict[str, Comparison] = {}
    for comparison in rank_results(results).comparisons:
        best = strongest.get(comparison.case)
        if comparison.role == "peer" and (best is None or comparison.ratio < best.ratio):
            strongest[comparison.case] = comparison
    rows = [strongest[case.name] for case in results.cases if case.name in strongest]
    rows.sort(key=lambda row: row.ratio >= 1)  # what is behind a peer is said first
    peers = ", ".join(f"{name} {version}" for name, version in results.versions.items() if name != "linkgauge")
    about = (
        f"In each case the strongest of {peers}, on {_place(results)}; medians of "
        f"{_plural(results.rounds, 'round')} of {results.seconds} s on loopback. A ratio above 1 is linkgauge's "
        "favour; CPU is the time of both ends, ours to theirs."
    )
    return f"{about}\n\n{_SHORT_HEADER}\n" + "\n".join(_short_row(row) for row in rows)


def write_csv(results: Results, path: Path) -> None:
    """Write every comparison as a row."""
    rows = [asdict(comparison) for comparison in rank_results(results).comparisons]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Comparison.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(rows)


def draw(results: Results, path: Path) -> None:
    """Write a PNG of every comparison with a peer, in the order of the report, on a logarithmic axis."""
    from matplotlib.figure import Figure

    compared = [row for row in rank_results(results).comparisons if row.role == "peer"]
    if not compared:
        return
    figure: Any = Figure(figsize=(11, 1.2 + 0.36 * len(compared)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(1.0, color="#888888", linewidth=1)
    for y, row in enumerate(compared):
        color = _OURS if row.ratio >= 1 else _THEIRS
        axes.plot([row.low, row.high], [y, y], color=color, linewidth=2, solid_capstyle="butt")
        axes.plot([row.ratio], [y], marker="o", color=color)
        axes.annotate(
            f"{row.ratio:.2f}", (row.high, y), (6, -3), textcoords="offset points", fontsize=8, color=color
        )
    axes.set_yticks(range(len(compared)), [f"{row.case}: against {row.other}" for row in compared], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    ticks = [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("linkgauge's rate to the other's; line: 95 % bootstrap interval")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=120)


def rate_text(rate: float, unit: str) -> str:
    """Return a rate with its unit: transactions or datagrams a second, a share, Mb/s or Gb/s."""
    if unit in {TRANSACTIONS, DATAGRAMS}:
        return f"{rate:,.0f} /s"
    if unit == SHARE:
        return f"{rate:.1%} {SHARE}"
    return f"{rate / 1e9:.1f} Gb/s" if rate >= _GIGABIT else f"{rate / 1e6:,.1f} Mb/s"


def _about(results: Results) -> Iterator[str]:
    if results.is_interrupted:
        yield "**This benchmark was broken off: not every case has all its rounds.**"
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    missing = f" Not installed, and left out: {', '.join(results.missing)}." if results.missing else ""
    memory = results.memory_copy_bit_s
    copied = (
        f" One core copies {memory / 8 / 2**30:.1f} GiB/s in memory, {memory / 1e9:.0f} Gb/s." if memory else ""
    )
    yield (
        f"Measured on {results.date} on {_place(results)}, in {results.elapsed_s / 60:.0f} minutes: medians of "
        f"{_plural(results.rounds, 'round')} of {results.seconds} s, all tools in turn.{copied}"
    )
    yield f"Versions: {versions}.{missing}"
    yield (
        f"Rounds measured again because over 2 % of the machine's time was stolen: {results.repeated}; "
        f"disturbed and counted nevertheless: {results.disturbed}."
    )


def _place(results: Results) -> str:
    names = ("CPU", "cores", "kernel", "congestion control")
    cpu, cores, kernel, congestion = (results.machine.get(name, "unknown") for name in names)
    return f"{cpu}, {cores} cores, {kernel}, {congestion}"


def _failures(results: Results) -> Iterator[str]:
    failed: list[str] = []
    retried: list[str] = []
    for case, entry in _entries(results.cases):
        line = f"- {case.name}, {_code(entry.label)}"
        if entry.failure:
            failed.append(f"{line}: {_escaped(entry.failure)}")
        retried += [f"{line}: {_escaped(words)}" for words in entry.retries]
    if failed:
        yield "### What failed twice in a row, and is left out\n" + "\n".join(failed)
    if retried:
        yield "### Rounds that failed once\n" + "\n".join(retried)


def _section(title: str, rows: Sequence[Comparison]) -> Iterator[str]:
    if not rows:
        yield f"### {title}\nNothing."
        return
    yield f"### {title}\n{_HEADER}\n" + "\n".join(_row(row) for row in rows)


def _row(row: Comparison) -> str:
    shares = [f"{share:.2f}" for share in (row.our_floor_share, row.other_floor_share) if share is not None]
    at_least = "" if row.at_least is None else f"{row.at_least:g}{' missed' if row.misses_rate else ''}"
    chance = ", may be chance" if row.misses_rate and row.may_be_chance else ""
    cpu_at_most = "" if row.cpu_at_most is None else f"{row.cpu_at_most:g}{' missed' if row.misses_cpu else ''}"
    return _cells(
        row.case,
        _code(row.ours),
        _code(row.other),
        _both_rates(row),
        _ratio(row),
        at_least + chance,
        _cpu(row),
        cpu_at_most,
        " · ".join(shares),
    )


def _short_row(row: Comparison) -> str:
    return _cells(row.title, _code(row.ours), _code(row.other), _both_rates(row), _ratio(row), _cpu(row))


def _both_rates(row: Comparison) -> str:
    ours, theirs = rate_text(row.our_rate, row.unit), rate_text(row.other_rate, row.unit)
    number, _, unit = ours.partition(" ")
    return f"{number} · {theirs}" if unit == theirs.partition(" ")[2] else f"{ours} · {theirs}"


def _ratio(row: Comparison) -> str:
    digits = 3 if row.unit == SHARE else 2
    return f"{row.ratio:.{digits}f} ({row.low:.{digits}f}–{row.high:.{digits}f})"


def _cpu(row: Comparison) -> str:
    return "" if row.cpu_ratio is None else f"{row.cpu_ratio:.2f}"


def _datagrams(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Return the limit and the loss of every tool that sent datagrams as fast as it could."""
    rows = [
        _cells(
            case.name,
            _code(entry.label),
            _limit_text(entry),
            rate_text(entry.median_rate, entry.unit),
            f"{median(lost):.2%}",
        )
        for case, entry in _entries(cases)
        if (lost := known([each.lost_share for each in entry.rounds.values()]))
        and entry.median_rate is not None
        and entry.requested_bit_s is None
    ]
    if rows:
        yield f"{_DATAGRAM_HEADER}\n" + "\n".join(rows)


def _limit_text(entry: EntryResult) -> str:
    limits = known([each.limit_bit_s for each in entry.rounds.values()])
    return f"{median(limits) / 1e6:,.0f} Mb/s" if limits else "nothing"


def _requested(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Return the rates that senders were to keep, and those that they kept."""
    rows = [
        _requested_row(entry, entry.requested_bit_s, entry.median_rate)
        for _, entry in _entries(cases)
        if entry.requested_bit_s is not None and entry.median_rate is not None
    ]
    if rows:
        yield f"{_REQUESTED_HEADER}\n" + "\n".join(dict.fromkeys(rows))  # an entry may be in several comparisons


def _requested_row(entry: EntryResult, requested_bit_s: int, sent_bit_s: float) -> str:
    difference = sent_bit_s / requested_bit_s - 1
    missed = " missed" if abs(difference) > REQUESTED_WITHIN else ""
    skipped = known([each.skipped for each in entry.rounds.values()])
    return _cells(
        f"{requested_bit_s / 1e6:,.0f} Mb/s",
        _code(entry.label),
        f"{sent_bit_s / 1e6:,.3f} Mb/s",
        f"{difference:+.2%}",
        f"{REQUESTED_WITHIN:.1%}{missed}",
        f"{median(skipped):,.0f}" if skipped else "unknown",
    )


def _drawing(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Return what the process that draws took and wrote."""
    for _, entry in _entries(cases):
        own = [each.own_cores for each in entry.rounds.values() if each.own_cores is not None]
        written = [each.screen_byte_s for each in entry.rounds.values() if each.screen_byte_s is not None]
        if own:
            wrote = f", and wrote {median(written) / 1e3:.1f} kB/s to its terminal" if written else ""
            yield f"The process of {_code(entry.label)} itself took {median(own):.1%} of a core{wrote}."


def _floors(results: Results) -> Iterator[str]:
    """Return the rates of all floors: the limits of this machine in Python."""
    floors = [
        _cells(case.name, _code(entry.label), rate_text(entry.median_rate, entry.unit))
        for case, entry in _entries(results.cases)
        if entry.role == "floor" and entry.median_rate is not None
    ]
    if floors:
        yield f"{_FLOOR_HEADER}\n" + "\n".join(floors)


def _entries(cases: Iterable[CaseResult]) -> Iterator[tuple[CaseResult, EntryResult]]:
    for case in cases:
        for entry in case.entries:
            yield case, entry


def _cells(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"


def _code(text: str) -> str:
    return f"`{_escaped(text).replace('`', chr(39))}`"


def _escaped(text: str | None) -> str:
    """Return a text that cannot end a cell or begin a tag."""
    return (text or "").replace("|", "\\|").replace("<", "‹").replace(">", "›")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
