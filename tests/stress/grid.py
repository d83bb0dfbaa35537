"""The grid of causes: links drawn from a seed, each impaired in one known way, and the findings about them.

Usage: make grid ARGS="--seed 7 --cases 200"

Each case is a lab link with a rate, a delay, a direction, sessions, and one cause out of the families below. A case
counts where the cause costs at least a tenth of the expected rate. Printed by family: the first finding is right;
the right one comes later; none has a cause; the first one is wrong; and how often a first finding is right by the
confidence with which it is said. A case is void if the hypervisor took more than 5 % of the machine's time.
`--record FOLDER` writes each miss there as a scenario, for tests/presets/diagnosis.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

from causes import write_scenario
from cpu_faults import competitors, last_core, limited
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.lab.builder import Lab, open_lab
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import Evidence, link_evidence
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.live import EvidenceCollector
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.lab_link import NO_FAULTS, Faults, plan_lab_link
from linkgauge.presets.wire import DEFAULT_VARIANT
from worker_faults import disturbed, set_pace, stop_again_and_again

_DEADLINE_S: Final = 90.0
_MOST_STOLEN: Final = 0.05
_EFFECT: Final = 0.9  # of the expected rate: above it the cause costs too little to be sought
_SECONDS: Final = 4
_KIB: Final = 1_024
_SILENT: Final = {"unexplained", "at-expected"}


@dataclass(frozen=True)
class Case:
    """One link with one cause. `wanted` has the codes of the right findings; sysctls are of one end's namespace.

    `pace_bit_s` is the rate to which another program limits the sender. `stopped` is the share of each period of
    `period_s` for which the workers of one end stand still: the sender's if `stops_sender`, else the receiver's.

    With `pinned` the near end uses the first core alone and the far end the last. `competitors` processes of
    niceness `nice` keep the core of the end `at` busy, or a quota of `quota_percent` of a core stops that end; the
    first finding has to name it.
    """

    number: int
    family: str
    wanted: tuple[str, ...]
    preset: str = "100mb-fd"
    faults: Faults = NO_FAULTS
    settings: Settings = field(default_factory=Settings)
    congestion: str = "cubic"
    near_sysctls: tuple[str, ...] = ()
    far_sysctls: tuple[str, ...] = ()
    pace_bit_s: int | None = None
    stopped: float = 0.0
    period_s: float = 0.1
    stops_sender: bool = False
    at: End | None = None
    competitors: int = 0
    nice: int = 0
    quota_percent: float | None = None
    workers: int | None = None
    pinned: bool = False

    def __str__(self) -> str:
        window = "" if self.settings.window_bytes is None else f" window {self.settings.window_bytes // _KIB}K"
        worker = "" if self.pace_bit_s is None else f" paced {self.pace_bit_s / 1e6:g} Mb/s"
        if self.stopped:
            worker = f" stopped {100 * self.stopped:.0f} % of {1e3 * self.period_s:.0f} ms"
        if self.competitors:
            worker = f" {self.at} beside {self.competitors} of niceness {self.nice}"
        if self.quota_percent is not None:
            worker = f" {self.at} quota {self.quota_percent:g} %"
        worker += "" if self.workers is None else f" workers {self.workers}"
        sysctls = [f"near {line}" for line in self.near_sysctls] + [f"far {line}" for line in self.far_sysctls]
        faults = ", ".join(
            f"{name} {value:g}" for name, value in encode(self.faults).items() if value and name != "seed"
        )
        return (
            f"{self.family} {self.preset} {self.settings.direction} x{self.settings.sessions}{window}{worker} "
            f"{self.congestion} {faults} {' '.join(sysctls)}".strip()
        )


Draw = Callable[[random.Random], Case]


def _settings(draw: random.Random, window_bytes: int | None = None) -> Settings:
    direction = draw.choice(list(Direction))
    return Settings(direction, draw.choice([1, 1, 2, 4]), window_bytes)


def _delay(draw: random.Random, least_ms: float, most_ms: float) -> float:
    return round(draw.uniform(least_ms, most_ms), 1)


def _with_sysctl(draw: random.Random, case: Case, line: str) -> Case:
    """Return a case with a sysctl of one end, drawn as well."""
    return replace(case, near_sysctls=(line,)) if draw.random() < 0.5 else replace(case, far_sysctls=(line,))


def _window(draw: random.Random) -> Case:
    window = draw.choice([16, 24, 32, 48, 56, 64, 96, 128, 192, 256]) * _KIB
    faults = Faults(delay_ms=_delay(draw, 1, 25))
    return Case(0, "window", ("window-below-bdp",), faults=faults, settings=_settings(draw, window))


def _clamp(draw: random.Random) -> Case:
    most = draw.choice([32, 64, 96, 128, 256]) * _KIB
    name = draw.choice(["tcp_rmem", "tcp_wmem"])
    clamp = f"{name}=4096 {min(most, 16_384)} {most}"
    faults = Faults(delay_ms=_delay(draw, 2, 25))
    case = Case(0, "clamp", ("window-clamped",), faults=faults, settings=_settings(draw))
    return _with_sysctl(draw, case, clamp)


def _scaling(draw: random.Random) -> Case:
    faults = Faults(delay_ms=_delay(draw, 4, 25))
    case = Case(0, "scaling", ("window-scaling-off",), faults=faults, settings=_settings(draw))
    return _with_sysctl(draw, case, "tcp_window_scaling=0")


def _loss(draw: random.Random) -> Case:
    faults = Faults(
        delay_ms=_delay(draw, 0, 12), loss_percent=draw.choice([0.2, 0.5, 1.0, 2.0]), seed=draw.randrange(99)
    )
    return Case(0, "loss", ("loss",), faults=faults, settings=_settings(draw))


def _slow(draw: random.Random) -> Case:
    faults = Faults(
        delay_ms=draw.choice([0.0, 0.0, _delay(draw, 1, 15)]), slow_percent=draw.choice([15, 25, 40, 60])
    )
    settings = Settings(draw.choice(list(Direction)), draw.choice([1, 2, 4, 8]))
    return Case(
        0, "slow", ("path-slow",), faults=faults, settings=settings, congestion=draw.choice(["cubic", "bbr"])
    )


def _mtu(draw: random.Random) -> Case:
    faults = Faults(wrong_mtu_bytes=draw.choice([576, 640, 800, 1_000]))
    return Case(0, "mtu", ("mtu-mismatch", "mss-small"), faults=faults, settings=_settings(draw))


def _healthy(draw: random.Random) -> Case:
    faults = Faults(delay_ms=draw.choice([0.0, _delay(draw, 0.5, 5)]))
    preset = draw.choice(["100mb-fd", "10mb-fd"])
    return Case(0, "healthy", ("at-expected",), preset=preset, faults=faults, settings=_settings(draw))


_RATES: Final = {"10mb-fd": 10_000_000, "100mb-fd": 100_000_000, "gbe-fd-1500": 1_000_000_000}


def _worker_case(draw: random.Random, family: str, wanted: str) -> Case:
    """Return a case without its cause, of one direction. A lab delays links of up to 200 Mb/s."""
    preset = draw.choice(["10mb-fd", "100mb-fd", "100mb-fd", "gbe-fd-1500"])
    is_delayed = preset != "gbe-fd-1500" and draw.random() < 0.6
    faults = Faults(delay_ms=_delay(draw, 0.5, 15)) if is_delayed else NO_FAULTS
    settings = Settings(draw.choice([Direction.OUT, Direction.IN]), draw.choice([1, 1, 2, 4]))
    return Case(0, family, (wanted,), preset=preset, faults=faults, settings=settings)


def _pacing(draw: random.Random) -> Case:
    case = _worker_case(draw, "pacing", "pacing")
    return replace(case, pace_bit_s=round(_RATES[case.preset] * draw.uniform(0.1, 0.75)))


def _reader(draw: random.Random) -> Case:
    case = _worker_case(draw, "reader", "receive-window")
    stopped, period_s = draw.uniform(0.5, 0.9), draw.choice([0.1, 0.3, 1.0])
    # With more memory the kernel takes in what arrives meanwhile; with less, its window would be the limit.
    byte_s = _RATES[case.preset] / 8 / case.settings.sessions
    missed = byte_s * stopped * period_s * draw.uniform(0.3, 0.8)
    limit = round(max(131_072, missed, 6 * byte_s * case.faults.delay_ms / 1e3))
    name = "far_sysctls" if case.settings.direction is Direction.OUT else "near_sysctls"
    case = replace(case, **{name: (f"tcp_rmem=4096 131072 {limit}",)})
    return replace(case, stopped=stopped, period_s=period_s)


def _starved(draw: random.Random) -> Case:
    case = _worker_case(draw, "starved", "sender-starved")
    period_s = draw.choice([0.1, 0.3, 1.0])
    return replace(case, stopped=draw.uniform(0.5, 0.9), period_s=period_s, stops_sender=True)


def _rates(draw: random.Random) -> Case:
    """Return a case of another family at another rate. At 1 Gb/s a lab has neither delay nor loss."""
    if draw.random() < 0.3:
        case = draw.choice([_slow, _mtu])(draw)
        case = replace(case, preset="gbe-fd-1500", faults=replace(case.faults, delay_ms=0.0))
    else:
        case = replace(draw.choice([_window, _clamp, _scaling, _loss, _slow, _mtu])(draw), preset="10mb-fd")
        longer = min(100.0, 4 * case.faults.delay_ms)
        case = replace(case, faults=replace(case.faults, delay_ms=longer))
    return replace(case, family="rates")


_FAST_PRESETS: Final = ("10gbe-1500", "25gbe-1500", "40gbe-1500", "100gbe-1500")


def _cpu_case(draw: random.Random, family: str, wanted: str) -> Case:
    """Return a case without its cause, of one direction over a link that takes some of a core."""
    settings = Settings(draw.choice([Direction.OUT, Direction.IN]), draw.choice([1, 1, 2, 4]))
    end = draw.choice([End.NEAR, End.FAR])
    return Case(0, family, (wanted,), preset=draw.choice(_FAST_PRESETS), settings=settings, at=end)


def _competitor(draw: random.Random) -> Case:
    case = _cpu_case(draw, "competitor", "core-saturated")
    return replace(case, pinned=True, competitors=draw.choice([1, 2, 4]), nice=draw.choice([0, 0, 5, 10]))


def _quota(draw: random.Random) -> Case:
    return replace(_cpu_case(draw, "quota", "cpu-quota"), quota_percent=draw.choice([2, 4, 6, 10, 15]))


def _one_worker(draw: random.Random) -> Case:
    """Return a case of many sessions on one worker, each end on a core of its own; either end may be full."""
    case = _cpu_case(draw, "worker", "core-saturated")
    sessions = draw.choice([2, 8, 32])
    settings = replace(case.settings, sessions=sessions)
    return replace(case, preset="100gbe-1500", settings=settings, at=None, workers=1, pinned=True)


FAMILIES: Final[dict[str, Draw]] = {
    "window": _window,
    "clamp": _clamp,
    "scaling": _scaling,
    "loss": _loss,
    "slow": _slow,
    "mtu": _mtu,
    "healthy": _healthy,
    "pacing": _pacing,
    "reader": _reader,
    "starved": _starved,
    "rates": _rates,
    "competitor": _competitor,
    "quota": _quota,
    "worker": _one_worker,
}


def draw_cases(seed: int, count: int, families: list[str]) -> list[Case]:
    """Return the cases of a seed: the same ones each time, of the families in turn."""
    draw = random.Random(seed)
    return [replace(FAMILIES[families[number % len(families)]](draw), number=number) for number in range(count)]


# At the near end of a lab, in a separate process.


async def _measure(case: Case, peer: Peer) -> Evidence | None:
    preset = load_catalog().find(case.preset)
    plan = Plan(case.settings, duration_ns=_SECONDS * SECOND_NS)
    plan = replace(plan, socket=replace(plan.socket, congestion=case.congestion), workers=case.workers)
    if case.pinned:
        plan = replace(plan, near_cores=(0,), far_cores=(last_core(),))
    collector = EvidenceCollector(Meter(), link_evidence(preset, DEFAULT_VARIANT))
    async with open_run(plan, peer, expectation_for=partial(find_expectation, preset)) as measuring:
        async for event in measuring:
            collector.meter.feed(event)
            collector.feed(event)
    return collector.period_evidence()


# Outside.


def _far_end_pid(lab: Lab) -> int:
    """Return a process of the lab's far namespace: the endpoint, a child of the keeper."""
    children = Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text(encoding="ascii").split()
    for child in children:
        if b"engine.far.loopback" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise SystemExit("the lab's endpoint is not there")


def _set_sysctls(pid: int, sysctls: tuple[str, ...]) -> None:
    for line in sysctls:
        command = ["nsenter", f"--net=/proc/{pid}/ns/net", "sysctl", "-qw", f"net.ipv4.{line}"]
        subprocess.run(command, check=True)


def _disturbance(case: Case, near_pid: int, far_pid: int) -> AbstractContextManager[None]:
    """Return the cause of a case that lies in the workers of one end, or in their cores."""
    if case.competitors:
        return competitors(case.competitors, 0 if case.at is End.NEAR else last_core(), case.nice)
    if case.quota_percent is not None:
        return limited(near_pid if case.at is End.NEAR else far_pid, case.quota_percent)
    sends_near = case.settings.direction is Direction.OUT
    sender, receiver = (near_pid, far_pid) if sends_near else (far_pid, near_pid)
    pace_bit_s, sessions = case.pace_bit_s, case.settings.sessions
    if pace_bit_s is not None:
        return disturbed(sender, lambda workers, _is_over: set_pace(workers, pace_bit_s), sessions)
    if not case.stopped:
        return nullcontext()

    def stop(workers: dict[int, list[int]], is_over: threading.Event) -> None:
        stop_again_and_again(workers, case.stopped, case.period_s, is_over)

    return disturbed(sender if case.stops_sender else receiver, stop, sessions)


def _try(case: Case) -> Evidence | None:
    link = plan_lab_link(load_catalog().find(case.preset), case.faults)
    with open_lab(link) as lab:
        _set_sysctls(lab.keeper_pid, case.near_sysctls)
        _set_sysctls(_far_end_pid(lab), case.far_sysctls)
        inside = [sys.executable, __file__, "--inside", json.dumps(encode(case)), "--peer", str(lab.peer)]
        process = subprocess.Popen(
            lab.near_end_command(inside), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            with _disturbance(case, process.pid, _far_end_pid(lab)):
                out, err = process.communicate(timeout=_DEADLINE_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        print(err.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return decode(Evidence, json.loads(out))


def grade(case: Case, evidence: Evidence, findings: tuple[Finding, ...]) -> str:
    """Return the grade of the findings: right, second, silent or wrong; void or no effect if it does not count."""
    cores = (*evidence.near.cores, *evidence.far.cores)
    if max((core.steal for core in cores), default=0.0) > _MOST_STOLEN:
        return "void"
    has_effect = evidence.bit_s < _EFFECT * (evidence.expected_bit_s or 0.0)
    if case.family == "healthy":
        return "right" if findings[0].code in case.wanted else "wrong"
    if not has_effect:
        return "no effect"
    is_right = [finding.code in case.wanted and case.at in {None, finding.end} for finding in findings]
    if any(is_right):
        return "right" if is_right[0] else "second"
    return "silent" if findings[0].code in _SILENT or findings[0].confidence < 0.5 else "wrong"


_GRADES: Final = ("right", "second", "silent", "wrong", "no effect", "void")
_MISSES: Final = _GRADES[1:4]
_CONFIDENCES: Final = (
    ("0.9 or more", 0.9),
    ("0.8 to 0.9", 0.8),
    ("0.6 to 0.8", 0.6),
    ("0.5 to 0.6", 0.5),
    ("less, without a cause", 0.0),
)


class _Scores:
    """The grades of the cases so far, by family."""

    def __init__(self) -> None:
        self.grades: dict[str, Counter[str]] = {}
        self.confidences: dict[str, Counter[bool]] = {name: Counter() for name, _ in _CONFIDENCES}

    def add(self, case: Case, evidence: Evidence) -> tuple[str, str]:
        """Judge a case by the rules as they are now; return its grade, and a line about it."""
        findings = diagnose(evidence)
        word = grade(case, evidence, findings)
        self.grades.setdefault(case.family, Counter())[word] += 1
        if word in _GRADES[:4]:
            name = next(name for name, least in _CONFIDENCES if findings[0].confidence >= least)
            self.confidences[name][word == "right"] += 1
        first = ", ".join(f"{each.code} {each.share or 0:.2f}/{each.confidence:.2f}" for each in findings[:3])
        share = 100 * evidence.bit_s / (evidence.expected_bit_s or 1)
        return word, f"{case.number:>4} {word:<9} {share:5.1f} %  {case}: {first}"

    def report(self) -> None:
        """Print the table, and the share of first findings that are right."""
        print(f"\n{'family':<10}" + "".join(f"{word:>11}" for word in _GRADES))
        total = sum(self.grades.values(), Counter())
        for family, counts in [*self.grades.items(), ("all", total)]:
            print(f"{family:<10}" + "".join(f"{counts[word]:>11}" for word in _GRADES))
        counted = sum(total[word] for word in _GRADES[:4])
        if counted:
            for name, counts in self.confidences.items():
                if counts:
                    print(f"said with {name}: {counts[True]} of {counts.total()} right")
            print(f"first finding right: {total['right']} of {counted}, {100 * total['right'] / counted:.1f} %")


def _run_grid(cases: list[Case], record: Path | None, evidence_folder: Path | None) -> None:
    scores = _Scores()
    for case in cases:
        with suppress(subprocess.TimeoutExpired):
            evidence = _try(case)
            if evidence is None:
                continue
            word, line = scores.add(case, evidence)
            print(line, flush=True)
            if evidence_folder is not None:
                text = json.dumps({"case": encode(case), "evidence": encode(evidence)})
                (evidence_folder / f"{case.number:04}.json").write_text(text, encoding="utf-8")
            if record is not None and word in _MISSES:
                write_scenario(record / f"{case.family}-{case.number:04}.toml", str(case), case.wanted[0], evidence)
    scores.report()


def _regrade(folder: Path) -> None:
    """Judge stored evidence by the rules as they are now, and print the misses."""
    scores = _Scores()
    for path in sorted(folder.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        word, line = scores.add(decode(Case, stored["case"]), decode(Evidence, stored["evidence"]))
        if word in _MISSES:
            print(line)
    scores.report()


def main() -> None:
    """Run the grid, judge stored evidence again, or measure one case inside a lab."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--families", help="families by name, with commas between", default=",".join(FAMILIES))
    parser.add_argument("--record", type=Path, help="a folder for the scenarios of misses")
    parser.add_argument("--evidence", type=Path, help="a folder for the evidence of every case")
    parser.add_argument("--regrade", type=Path, help="judge the evidence of a folder again, without a run")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        case = decode(Case, json.loads(options.inside))
        print(json.dumps(encode(run(_measure(case, Peer.parse(options.peer))))))
        return
    if options.regrade is not None:
        _regrade(options.regrade)
        return
    for folder in (options.record, options.evidence):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    _run_grid(
        draw_cases(options.seed, options.cases, options.families.split(",")), options.record, options.evidence
    )


if __name__ == "__main__":
    main()
