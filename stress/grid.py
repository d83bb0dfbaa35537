"""The grid of causes: links drawn from a seed, each impaired in one known way, and the findings about them.

Usage: make grid ARGS="--seed 7 --cases 200"

Each case is a link with a rate, a delay, a direction, sessions, and one cause out of the families of
grid_cases.py. With `--makers wire-on,wire-off,router` link_makers.py builds the links in other ways than the lab
does, and there are the families of wide_cases.py as well. A case counts if the cause costs at least a tenth of
the expected rate. Printed by family, and by maker: the first finding is right; the right one comes later; none has
a cause; the first one is wrong; and how often a first finding is right by the confidence with which it is said. A
case is void if the hypervisor took more than 5 % of the machine's time. `--evidence FOLDER` stores every case,
`--regrade FOLDER` judges stored ones by the rules as they are now. `--record FOLDER` adds each miss to the recorded
cases there, which tests/presets/diagnosis replays, and with `--right 12` so many of each family that are right.
With `--check` a miss is measured once more by itself, and the exit status tells whether the bounds of
grid_scores.py hold. `--jobs 3` carries out so many slow links at a time.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engine"))

from cpu_faults import competitors, last_core, limited
from grid_cases import Case
from grid_scores import MISSES, GradedCase, Scores, grade_case, record_case
from link_makers import MAKERS, MadeLink, open_link
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LabError, LabUnavailable
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.evidence import Evidence, link_evidence
from linkgauge.presets.diagnosis.live import EvidenceCollector
from linkgauge.presets.expectation import find_expectation
from wide_cases import draw_cases, families_of
from worker_faults import disturbed, set_pace, stop_again_and_again

_DEADLINE_S: Final = 90.0
_UDP_HEADERS: Final = 28
_SEND_DATAGRAMS: Final = """
import socket, sys, time
address, payload, bit_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = time.monotonic()
while True:
    sock.sendto(bytes(payload), (address, 9))
    due += (payload + 66) * 8 / bit_s
    time.sleep(max(0.0, due - time.monotonic()))
"""


# At the near end of a link, in a separate process.


def _plan(case: Case) -> Plan:
    plan = Plan(case.settings, duration_ns=round(case.seconds * SECOND_NS), workers=case.workers, mode=case.mode)
    plan = replace(plan, socket=replace(plan.socket, congestion=case.congestion))
    if case.warmup_s is not None:
        plan = replace(plan, warmup_ns=round(case.warmup_s * SECOND_NS))
    if case.block_bytes is not None:
        plan = replace(plan, block_bytes=case.block_bytes)
    return replace(plan, near_cores=(0,), far_cores=(last_core(),)) if case.pinned else plan


async def _measure(case: Case, peer: Peer) -> Evidence | None:
    preset, plan = load_catalog().find(case.preset), _plan(case)
    collector = EvidenceCollector(Meter(), link_evidence(preset, case.variant))

    def find(settings: Settings, ip_version: int) -> Expectation:
        return find_expectation(preset, settings, variant=case.variant, ip_version=ip_version)

    async with open_run(plan, peer, expectation_for=find) as measuring:
        async for event in measuring:
            collector.meter.feed(event)
    return collector.period_evidence()


# Outside.


def _prepare(case: Case, link: MadeLink) -> None:
    """Set up both ends as the case wants them."""
    receiver = case.sender.other
    for end, sysctls in ((End.NEAR, case.near_sysctls), (End.FAR, case.far_sysctls)):
        for line in sysctls:
            link.run_at(end, "sysctl", "-qw", f"net.ipv4.{line}")
    if case.route_window_bytes is not None:
        link.limit_window(receiver, case.route_window_bytes)
    if case.filters:
        _slow_packets(link.pid_of(receiver), link.device_of(receiver), case.filters)


def _slow_packets(pid: int, device: str, filters: int) -> None:
    """Have the kernel handle the packets of a device on the last core, and compare each with some filters."""
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
    match = f"filter add dev {device} ingress protocol ip prio {{0}} u32 match u32 {{0:#x}} 0xffffffff at 12"
    lines = [f"qdisc add dev {device} clsact", *(match.format(number) for number in range(1, filters + 1))]
    subprocess.run([*inside, "tc", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    spread = f"mount -t sysfs none /sys && echo {1 << last_core():x} > /sys/class/net/{device}/queues/rx-0/rps_cpus"
    subprocess.run([*inside, "unshare", "--mount", "sh", "-c", spread], check=True)


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


@contextmanager
def _other_traffic(case: Case, link: MadeLink) -> Generator[None]:
    """Send datagrams beside the run for a `with` block, from the end that sends; nobody reads them."""
    if case.other_bit_s is None:
        yield
        return
    address = FAR_ADDRESS if case.sender is End.NEAR else NEAR_ADDRESS
    payload = min(1_400, (case.mtu_bytes or 1_500) - _UDP_HEADERS)
    command = [sys.executable, "-c", _SEND_DATAGRAMS, address, str(payload), str(case.other_bit_s)]
    process = subprocess.Popen(link.command_at(case.sender, command))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _try(case: Case) -> GradedCase | None:
    """Carry out a case; return None, and say why, if it could not be."""
    try:
        evidence = _carry_out(case)
    except LabUnavailable as error:
        sys.exit(f"no lab: {error}")
    except (subprocess.SubprocessError, SystemExit, LabError) as error:
        print(f"{case.number:>4} not run   {case}: {error}", file=sys.stderr)
        return None
    return None if evidence is None else grade_case(case, evidence)


def _carry_out(case: Case) -> Evidence | None:
    with open_link(case) as link, _other_traffic(case, link):
        _prepare(case, link)
        inside = [sys.executable, __file__, "--inside", json.dumps(encode(case)), "--peer", str(link.peer)]
        process = subprocess.Popen(
            link.command_at(End.NEAR, inside), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            with _disturbance(case, process.pid, link.far_pid):
                out, err = process.communicate(timeout=_DEADLINE_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        print(err.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return decode(Evidence, json.loads(out))


@dataclass(frozen=True)
class _Stores:
    """The folders for what was measured, and how many right cases of each family to record."""

    evidence: Path | None = None
    record: Path | None = None
    most_right: int = 0

    def make_folders(self) -> None:
        for folder in (self.evidence, self.record):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)

    def store(self, cases: Iterable[GradedCase]) -> Iterator[GradedCase]:
        """Store cases as they come, and record the misses among them and some of the right ones."""
        recorded: Counter[str] = Counter()
        for graded in cases:
            case, is_right = graded.case, graded.grade == "right"
            if self.evidence is not None:
                text = json.dumps({"case": encode(case), "evidence": encode(graded.evidence)})
                (self.evidence / f"{case.number:04}.json").write_text(text, encoding="utf-8")
            wanted = graded.grade in MISSES or (is_right and recorded[case.family] < self.most_right)
            if self.record is not None and wanted:
                record_case(self.record, graded)
                recorded[case.family] += is_right
            yield graded


def _measure_cases(cases: list[Case], jobs: int) -> Iterator[GradedCase]:
    """Carry out the cases: those that wait several at a time, those that need the cores one by one."""
    with ThreadPoolExecutor(jobs) as pool:
        for graded in pool.map(_try, [case for case in cases if case.is_light]):
            if graded is not None:
                print(graded, flush=True)
                yield graded
    for case in cases:
        if not case.is_light and (graded := _try(case)) is not None:
            print(graded, flush=True)
            yield graded


def _measure_again(cases: list[GradedCase]) -> Iterator[GradedCase]:
    """Yield the cases, each miss measured once more by itself: another load of the machine is a cause, too."""
    for graded in cases:
        again = _try(graded.case) if graded.grade in MISSES else None
        if again is not None:
            print(f"once more: {again}", flush=True)
        yield again or graded


def _read_stored(folder: Path) -> Iterator[GradedCase]:
    """Judge stored evidence by the rules as they are now, and print the misses."""
    for path in sorted(folder.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        graded = grade_case(decode(Case, stored["case"]), decode(Evidence, stored["evidence"]))
        if graded.grade in MISSES:
            print(graded)
        yield graded


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--families", help="families by name, with commas between; all that the makers can")
    parser.add_argument("--makers", help=f"makers of links, of {', '.join(MAKERS)}", default="lab")
    parser.add_argument("--jobs", type=int, default=1, help="slow links at a time")
    parser.add_argument("--check", action="store_true", help="measure misses once more; fail beyond the bounds")
    parser.add_argument("--record", type=Path, help="a folder for recorded cases: every miss")
    parser.add_argument("--right", type=int, default=0, help="record so many right cases of each family, too")
    parser.add_argument("--evidence", type=Path, help="a folder for the evidence of every case")
    parser.add_argument("--regrade", type=Path, help="judge the evidence of a folder again, without a run")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the grid, judge stored evidence again, or measure one case inside a lab."""
    options = _options()
    if options.inside is not None:
        case = decode(Case, json.loads(options.inside))
        print(json.dumps(encode(run(_measure(case, Peer.parse(options.peer))))))
        return
    stores = _Stores(options.evidence, options.record, options.right)
    stores.make_folders()
    if options.regrade is not None:
        graded = _read_stored(options.regrade)
    else:
        makers = options.makers.split(",")
        families = options.families.split(",") if options.families else families_of(makers)
        cases = draw_cases(options.seed, options.cases, families, makers)
        graded = _measure_cases(cases, options.jobs)
        graded = _measure_again(list(graded)) if options.check else graded
    scores = Scores(list(stores.store(graded)))
    scores.report()
    if options.check and (problems := scores.problems()):
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
