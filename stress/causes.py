"""Accuracy of the diagnosis: every cause of a slow link, produced on purpose, against the first finding.

Usage: .venv/bin/python stress/causes.py [--tries 10] [--only window-below-bdp,loss] [--record]

Each try builds a link between two namespaces of this machine (engine/lab), impairs it in one way, runs over it for
some seconds and diagnoses it. Prints for each cause how often its finding came first, and which others did. Other
load on the machine is a cause too, and shows. With --record the last correct try is written to
tests/presets/diagnosis/scenarios/, as a case for the tests of the diagnosis.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.lab.devices import disable_offloads
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import Evidence, link_evidence
from linkgauge.presets.diagnosis.live import EvidenceCollector
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.lab_link import NO_FAULTS, Faults, plan_lab_link
from linkgauge.presets.wire import DEFAULT_VARIANT

_SCENARIOS: Final = Path(__file__).parents[1] / "tests" / "presets" / "diagnosis" / "scenarios"
_DEADLINE_S: Final = 60.0
_PLAIN: Final = Settings()


@dataclass(frozen=True)
class Cause:
    """One way to impair a link. `sysctls` and `offloads` are the near end's; `busy_on` names a loaded core."""

    name: str
    preset: str
    wanted: str
    faults: Faults = NO_FAULTS
    settings: Settings = _PLAIN
    seconds: int = 5
    congestion: str | None = None
    sysctls: dict[str, str] = field(default_factory=dict[str, str])
    offloads: bool = True
    busy_on: int | None = None
    near_cores: tuple[int, ...] | None = None


_FAST: Final = "10gbe-1500"
_DELAYED: Final = Faults(delay_ms=10)
CAUSES: Final = (
    Cause("healthy-100mb", "100mb-fd", "at-expected"),
    Cause("healthy-duplex", "100mb-fd", "at-expected", settings=Settings(Direction.DUPLEX)),
    Cause("healthy-1gb", "gbe-fd-1500", "at-expected"),
    Cause("healthy-delay", "100mb-fd", "at-expected", Faults(delay_ms=2)),
    Cause("window-below-bdp", "100mb-fd", "window-below-bdp", _DELAYED, Settings(window_bytes=57_344)),
    Cause(
        "window-clamped",
        "100mb-fd",
        "window-clamped",
        _DELAYED,
        Settings(Direction.IN),
        sysctls={"net/ipv4/tcp_rmem": "4096 65536 65536"},
    ),
    Cause(
        "window-scaling-off",
        "100mb-fd",
        "window-scaling-off",
        _DELAYED,
        sysctls={"net/ipv4/tcp_window_scaling": "0"},
    ),
    Cause("loss", "100mb-fd", "loss", Faults(delay_ms=5, loss_percent=1)),
    Cause("path-slow", "100mb-fd", "path-slow", Faults(slow_percent=20)),
    Cause("mtu-mismatch", "100mb-fd", "mtu-mismatch", Faults(wrong_mtu_bytes=576)),
    Cause("core-saturated", _FAST, "core-saturated", near_cores=(0,), busy_on=0),
    Cause("offloads-off", _FAST, "offloads-off", offloads=False),
)


# At the near end of a lab, in a separate process.

# Preempts the worker on its core and leaves it a tenth. A fair share of a crowded core, a third or a thirteenth,
# was enough for 9.1 of 9.4 Gb/s, because the scheduler runs a worker that sleeps much at once.
_BUSY_LOOP: Final = """
import contextlib, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    end = time.monotonic() + 0.018
    while time.monotonic() < end:
        pass
    time.sleep(0.002)
"""


@contextlib.contextmanager
def _impaired(cause: Cause) -> Generator[None]:
    """Impair the near end for a `with` block."""
    for name, value in cause.sysctls.items():
        Path("/proc/sys", name).write_text(value, encoding="ascii")  # of this namespace alone
    if not cause.offloads:
        disable_offloads("near0")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        if cause.busy_on is not None:
            processes = [subprocess.Popen([sys.executable, "-c", _BUSY_LOOP, str(cause.busy_on)])]
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def _measure(cause: Cause, peer: Peer) -> Evidence | None:
    preset = load_catalog().find(cause.preset)
    plan = Plan(cause.settings, duration_ns=cause.seconds * SECOND_NS, near_cores=cause.near_cores)
    if cause.congestion is not None:
        plan = replace(plan, socket=replace(plan.socket, congestion=cause.congestion))
    collector = EvidenceCollector(Meter(), link_evidence(preset, DEFAULT_VARIANT))

    def find(settings: Settings, ip_version: int) -> Expectation:
        return find_expectation(preset, settings, ip_version=ip_version)

    async with open_run(plan, peer, expectation_for=find) as measuring:
        async for event in measuring:
            collector.meter.feed(event)
    return collector.period_evidence()


def _inside(name: str, peer: str) -> None:
    cause = next(each for each in CAUSES if each.name == name)
    with _impaired(cause):
        print(json.dumps(encode(run(_measure(cause, Peer.parse(peer))))))


# Outside: labs, tries, the table.


def _try(cause: Cause) -> Evidence | None:
    link = plan_lab_link(load_catalog().find(cause.preset), cause.faults)
    with open_lab(link) as lab:
        command = lab.near_end_command([sys.executable, __file__, "--inside", cause.name, "--peer", str(lab.peer)])
        result = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    if result.returncode != 0:
        print(result.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return decode(Evidence, json.loads(result.stdout))


def _tries(cause: Cause, tries: int, *, record: bool) -> tuple[int, int, Counter[str], list[float]]:
    """Return the number of tries and of correct ones, the first findings, and the rates in Mb/s."""
    first: Counter[str] = Counter()
    rates: list[float] = []
    correct: Evidence | None = None
    for _ in range(tries):
        evidence = _try(cause)
        if evidence is None:
            first["not run"] += 1
            continue
        findings = diagnose(evidence)
        first[findings[0].code] += 1
        rates.append(evidence.bit_s / 1e6)
        if findings[0].code == cause.wanted:
            correct = evidence
    if record and correct is not None:
        _SCENARIOS.mkdir(exist_ok=True)
        write_scenario(_SCENARIOS / f"{cause.name}.toml", cause.name, cause.wanted, correct)
    return tries, first[cause.wanted], first, rates


def write_scenario(path: Path, title: str, wanted: str, evidence: Evidence) -> None:
    """Write a scenario: the finding that must come first, and the evidence without unknown values."""
    near, far = (replace(end, hostname="lab", system="Linux 6") for end in (evidence.near, evidence.far))
    anonymous = replace(evidence, near=near, far=far)
    lines = [f"# Recorded on an emulated link: {title}", f'wanted = "{wanted}"', ""]
    path.write_text("\n".join([*lines, *_toml("evidence", encode(anonymous))]) + "\n", encoding="utf-8")


def _toml(path: str, table: dict[str, Any], *, in_list: bool = False) -> list[str]:
    """Return a table and its nested tables as TOML, which the standard library cannot write."""
    lines = [f"[[{path}]]" if in_list else f"[{path}]"]
    deeper: list[str] = []
    for key, value in table.items():
        if isinstance(value, dict):
            deeper += ["", *_toml(f"{path}.{key}", value)]
        elif isinstance(value, list):
            for item in value:
                deeper += ["", *_toml(f"{path}.{key}", item, in_list=True)]
        elif isinstance(value, float):
            lines.append(f"{key} = {float(f'{value:.5g}')!r}")
        elif value is not None:
            lines.append(f"{key} = {json.dumps(value)}")
    return lines + deeper


def main() -> None:
    """Try every cause, or measure one inside a lab."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--only", help="causes by name, with commas between")
    parser.add_argument("--record", action="store_true", help="write scenarios for the tests")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        _inside(options.inside, options.peer)
        return
    only = None if options.only is None else options.only.split(",")
    print(f"{'cause':<20} {'wanted first':<20} {'was':>7}  {'Mb/s':>14}  others")
    for cause in CAUSES:
        if only is not None and cause.name not in only:
            continue
        tries, right, first, rates = _tries(cause, options.tries, record=options.record)
        span = f"{min(rates):.0f}-{max(rates):.0f}" if rates else "-"
        others = ", ".join(f"{code} {count}" for code, count in first.items() if code != cause.wanted)
        print(f"{cause.name:<20} {cause.wanted:<20} {right:>3}/{tries:<3}  {span:>14}  {others}", flush=True)
    print(f"load of the machine at the end, 1 and 5 minutes: {os.getloadavg()[0]:.1f} {os.getloadavg()[1]:.1f}")


if __name__ == "__main__":
    main()
