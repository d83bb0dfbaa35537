"""Coverage of the 95 % interval: how often those of short runs contain the mean of long runs.

Usage: .venv/bin/python stress/covers.py [--tries 100] [--preset 100mb-fd] [--seconds 3] [--long 20]

Builds a link between two namespaces and carries out many short runs, with long ones among them. The truth is the
mean of the long ones: drift affects both alike. A hundred tries take about nine minutes. Needs what `linkgauge lab`
needs, and a quiet machine: its load is part of the measurement.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import csv
import os
import sys
import time
from pathlib import Path

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.confidence import MIN_INTERVALS
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.summary import Measurement
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link

RESULTS = Path(__file__).parent / "results"
_INTERVAL_NS = SECOND_NS // 20
_EVERY = 20  # short runs between two long ones


async def _run(peer: Peer, seconds: float) -> Measurement | None:
    """Carry out one run; return its total."""
    meter = Meter()
    plan = Plan(duration_ns=round(seconds * SECOND_NS), interval_ns=_INTERVAL_NS)
    async with asyncio.timeout(seconds + 60), open_run(plan, peer) as measured:
        async for event in measured:
            meter.feed(event)
    meter.flush()
    return meter.summary().measured.total


async def _measure(peer: Peer, tries: int, seconds: float, long_s: float) -> None:
    began = time.monotonic()
    long_runs: list[Measurement | None] = []
    short: list[Measurement] = []
    for number in range(tries):
        if number % _EVERY == 0:
            print(f"{number} of {tries} short runs", flush=True)
            long_runs.append(await _run(peer, long_s))
        measured = await _run(peer, seconds)
        if measured is not None and measured.estimate is not None:
            short.append(measured)
    long_runs.append(await _run(peer, long_s))
    longs = [part for part in long_runs if part is not None]
    if not short or not longs:
        sys.exit("no run measured anything: is the far end there?")
    truth = sum(part.bytes for part in longs) * 8 * SECOND_NS / sum(part.span_ns for part in longs)
    steady = [part.estimate for part in short if part.estimate is not None]
    covered = [part.low <= truth <= part.high for part in steady]
    widths = sorted(part.half_width_percent or 0.0 for part in steady)
    means = [part.mean / 1e6 for part in steady]
    print(f"long runs: {', '.join(f'{part.bit_s / 1e6:.3f}' for part in longs)} Mb/s; together {truth / 1e6:.3f}")
    print(f"short runs: {min(means):.3f} to {max(means):.3f} Mb/s, ±{widths[len(widths) // 2]:.3f} % (median)")
    minutes = (time.monotonic() - began) / 60
    share = 100 * sum(covered) / len(covered)
    print(f"covered: {sum(covered)} of {len(covered)}, {share:.0f} %; took {minutes:.1f} minutes")
    print(f"load of the machine at the end, 1 and 5 minutes: {os.getloadavg()[0]:.1f} {os.getloadavg()[1]:.1f}")
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "covers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("mbit_s", "ci95_low_mbit_s", "ci95_high_mbit_s", "truth_mbit_s", "covered"))
        for part, holds in zip(steady, covered, strict=True):
            row = (part.mean, part.low, part.high, truth)
            writer.writerow([*(f"{value / 1e6:.4f}" for value in row), int(holds)])


def main() -> None:
    """Build the link, and measure at its near end."""
    parser = argparse.ArgumentParser(description="How often a 95 % interval holds the mean.")
    parser.add_argument("--preset", default="100mb-fd")
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--long", type=float, default=20.0)
    parser.add_argument("--peer", help="measure against this far end, and build nothing")
    options = parser.parse_args()
    if options.tries < 1:
        parser.error(f"--tries {options.tries}: give at least 1")
    if options.seconds * 0.8 * SECOND_NS < MIN_INTERVALS * _INTERVAL_NS:
        parser.error(f"--seconds {options.seconds:g} is too short for {MIN_INTERVALS} intervals")
    if options.peer:
        run(_measure(Peer.parse(options.peer), options.tries, options.seconds, options.long))
        return
    with open_lab(plan_lab_link(load_catalog().find(options.preset))) as lab:
        sys.exit(lab.run([sys.executable, *sys.argv, "--peer", str(lab.peer)], dict(os.environ)))


if __name__ == "__main__":
    main()
