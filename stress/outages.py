"""The grid of outages: every test with a link or a far end that is away for a while, and what its result claims.

Usage: .venv/bin/python stress/outages.py [--cases 200] [--seed 7] [--jobs 8]

Without `--cases` it is the whole grid: outages that begin every half a second of a test of 5 s and of the 4 s
behind it, of 0.5, 1.5 and 4 s, in each direction, of each workload, with an endpoint and with iperf3; the link
down, one way of it alone, the far end stopped. Prints each case whose result claims what cannot be true, then a
table: cases by kind and by what the result said. Exits with 1 if any result lied. Needs the rights for namespaces.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.end_to_end.outage_cases import KINDS, OutageCase, all_cases, find_lies
from tests.end_to_end.outage_link import OutageLink

_COLUMNS = ("pass", "short", "fail", "none", "not started")


def _carry_out(cases: Sequence[OutageCase]) -> list[tuple[OutageCase, dict[str, Any], list[str]]]:
    link = OutageLink()
    try:
        done: list[tuple[OutageCase, dict[str, Any], list[str]]] = []
        for case, result in link.carry_out_all(cases):
            lies = find_lies(case, result)
            for lie in lies:
                print(f"{case}: {lie}", flush=True)
            done.append((case, result, lies))
        return done
    finally:
        link.close()


def main() -> int:
    """Carry out the cases and print what they said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=8)
    arguments = parser.parse_args()
    cases = list(all_cases())
    random.Random(arguments.seed).shuffle(cases)
    cases = cases[: arguments.cases]
    shares = [cases[number :: arguments.jobs] for number in range(arguments.jobs)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        done = [each for part in pool.map(_carry_out, filter(None, shares)) for each in part]
    said = Counter((case.kind, result.get("verdict", "not started")) for case, result, _lies in done)
    print(f"{'':14}" + "".join(f"{column:>12}" for column in _COLUMNS))
    for kind in KINDS:
        print(f"{kind:14}" + "".join(f"{said[kind, column]:>12}" for column in _COLUMNS))
    lied = sum(bool(lies) for _case, _result, lies in done)
    print(f"{len(done)} cases, {lied} results claim what cannot be true")
    return int(lied > 0)


if __name__ == "__main__":
    sys.exit(main())
