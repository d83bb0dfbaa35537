"""Cases between network namespaces, one after the other: each is right, wrong or void, and the tally says enough.

A case is void if the hypervisor took more than 5 % of the machine's time while it went wrong.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from linkgauge.engine.host.cpu import read_core_times
from stolen_time import MOST_STOLEN, stolen_share

C = TypeVar("C")

Outcomes = dict[str, list[bool]]
"""Whether each case was right, by its kind; void ones do not count."""

_END_S: Final = 60.0


def require_root() -> None:
    """Exit unless this is root, who alone makes network namespaces."""
    if os.geteuid() != 0:
        sys.exit("network namespaces are made for this: run it as root")


def program(*arguments: str) -> list[str]:
    """Return the command line of linkgauge."""
    return [sys.executable, "-m", "linkgauge", *arguments]


@contextmanager
def endpoint_at(entry: list[str]) -> Iterator[None]:
    """Run an endpoint at a host, whose command lines begin with `entry`."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    endpoint = subprocess.Popen([*entry, *program("endpoint", "--open")], text=True, **pipes)
    try:
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        yield
    finally:
        endpoint.terminate()
        endpoint.communicate(timeout=_END_S)


def run_cases(cases: Iterable[C], kind_of: Callable[[C], str], test: Callable[[C], tuple[bool, str]]) -> Outcomes:
    """Test the cases with a data folder of their own, and print each.

    `test` returns whether a case is right, and its numbers or faults. It raises AssertionError, ValueError or an
    error of a subprocess if there is no result.
    """
    outcomes: Outcomes = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        for case in cases:
            is_right = _try(case, test)
            if is_right is not None:
                outcomes[kind_of(case)].append(is_right)
    return outcomes


def _try(case: C, test: Callable[[C], tuple[bool, str]]) -> bool | None:
    before = read_core_times()
    try:
        is_right, text = test(case)
    except (AssertionError, ValueError, subprocess.SubprocessError) as error:
        is_right, text = False, f"not run: {error}"
    word = "RIGHT" if is_right else "WRONG"
    if not is_right and (stolen := stolen_share(before)) > MOST_STOLEN:
        word = f"void ({stolen:.0%} of this machine's time was stolen)"
    print(f"{word}: {case}{text and ': '}{text}", flush=True)
    return is_right if word in {"RIGHT", "WRONG"} else None


def finish(outcomes: Outcomes, least: float = 1.0, *, all_of: str = "") -> NoReturn:
    """Print the tally and exit: with 0 if a share of all cases is right, and every case of the kind `all_of`."""
    every = [right for rights in outcomes.values() for right in rights]
    for kind, rights in (*outcomes.items(), ("all", every)):
        print(f"{kind:<18} {sum(rights):>3}/{len(rights)}")
    is_clean = bool(every) and sum(every) >= least * len(every) and all(outcomes.get(all_of, ()))
    print("CLEAN" if is_clean else "too few are right")
    sys.exit(not is_clean)
