"""The rate of a browser's test against that of two endpoints over the same link, in turn, and what it costs whom.

Usage: .venv/bin/python bench/browser_rate.py [--rates 10,50,100,500,1000] [--rounds 3] [--seconds 10]

For each rate one link of two namespaces, and on it in turn: a Chromium that downloads from an endpoint's page, two
endpoints, a Chromium that uploads, two endpoints the other way. Prints the medians, their ratio, and the share of a
core that the browser's kinds of processes and the endpoint's workers used in the browser's tests: one near a full
core is the limit. Needs root and Chromium, and a quiet machine: link, both ends and browser share its cores.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "stress"))

from browser_causes import Cause, Measured, link_of, measure_in_browser, measure_natively
from linkgauge.engine.model.directions import Direction

_PRESET: Final = "gbe-fd-1500"
_LEAST_SHARE: Final = 5.0  # percent of a core


def _costs(measured: list[Measured], seconds: int) -> str:
    """Return the mean shares of a core, the largest first."""
    names = {name for each in measured for name in each.browser_cpu_s}
    shares = {
        name: 100 * sum(each.browser_cpu_s.get(name, 0.0) for each in measured) / len(measured) / seconds
        for name in names
    }
    workers = [each.document["cpu"]["near"]["process_percent"] or 0.0 for each in measured]
    shares["endpoint (of the host)"] = sum(workers) / len(workers)
    hosts = [each.document["cpu"]["near"]["host_percent"] or 0.0 for each in measured]
    parts = [f"{name} {share:.0f} %" for name, share in sorted(shares.items(), key=lambda each: -each[1])]
    return (
        f"{', '.join(part for part in parts if float(part.split()[-2]) >= _LEAST_SHARE)}; host {max(hosts):.0f} %"
    )


def compare(rate: int, direction: Direction, options: argparse.Namespace) -> None:
    """Print a row for a link of a rate in Mb/s, in one direction."""
    cause = Cause(f"{rate}", (), direction=direction, preset=_PRESET, line_rate_mbit_s=rate)
    browser: list[Measured] = []
    native: list[Measured] = []
    with link_of(cause, "lab") as link:
        for _ in range(options.rounds):
            for results, measure in ((browser, measure_in_browser), (native, measure_natively)):
                with tempfile.TemporaryDirectory() as folder:
                    results.append(measure(link, cause, Path(folder), options))
    rates = [median(each.mbit_s or 0.0 for each in results) for results in (browser, native)]
    ratio = rates[0] / rates[1] if rates[1] else 0.0
    way = "down" if direction is Direction.OUT else "up"
    print(
        f"{rate:>6} {way:<5} {rates[0]:>9.2f} {rates[1]:>9.2f} {ratio:>6.3f}  {_costs(browser, options.seconds)}",
        flush=True,
    )


def main() -> None:
    """Print a row for each rate and direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="10,50,100,500,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=2)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the namespaces of a link are entered as root")
    print(f"{'Mb/s':>6} {'way':<5} {'browser':>9} {'linkgauge':>9} {'ratio':>6}  of a core, in the browser's tests")
    for rate in map(int, options.rates.split(",")):
        for direction in (Direction.OUT, Direction.IN):
            compare(rate, direction, options)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
