"""What linkgauge reports is what the wire carried: real runs over links whose payload rate is known.

The links are labs: two network namespaces and queues that count every packet as its wire would. The rates are
arithmetic on the wire, written out here a second time. A busy machine can hold an emulated line itself back, so
what is missed while several links are measured at once is measured again, alone: what is wrong stays wrong.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.lab.link_lab import Lab, open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import NO_FAULTS, Faults, plan_lab_link
from linkgauge.presets.wire import Variant, derive

pytestmark = pytest.mark.alone

DEADLINE_S = 40.0
MORE_TRIES = 2
CATALOG = load_catalog()


@dataclass(frozen=True)
class Truth:
    """A link, the Mb/s of payload that one direction of it carries, and how near to that a report must be.

    Linux has TCP timestamps on: a packet of the MTU holds MTU - 52 bytes of payload.
    """

    preset: str
    mbit_s: float
    within: float
    seconds: float = 3.0
    warmup: float = 1.0


# Ethernet puts 38 bytes around a packet; OC-3c has 149.76 Mb/s for cells of 53 bytes with 48 of AAL5 in them, of
# which 16 are headers and trailer: 32 cells for a packet of 1500, 192 for one of 9180. Reports travel on
# the link as well: four a second, of five sessions each, would be 0.4 % of 10 Mb/s, so there is one a second.
SLOW = (
    Truth("10mb-fd", 10 * 1448 / 1538, 0.003),
    Truth("100mb-fd", 100 * 1448 / 1538, 0.003),
    Truth("atm155-1500", 149.76 * 1448 / (32 * 53), 0.003),
    Truth("atm155-9180", 149.76 * 9128 / (192 * 53), 0.003),
)
FAST = (
    Truth("gbe-fd-1500", 1000 * 1448 / 1538, 0.015, seconds=2.0),
    Truth("gbe-fd-9000", 1000 * 8948 / 9038, 0.015, seconds=2.0),
)
CASES = [(direction, sessions) for direction in ("out", "in", "duplex") for sessions in (1, 5)]


def begin(lab: Lab, *arguments: object) -> "subprocess.Popen[str]":
    """Start a headless run at a lab's near end."""
    command = [sys.executable, "-P", "-m", "linkgauge", "run", str(lab.peer), "--json", *map(str, arguments)]
    return subprocess.Popen(
        lab.near_end_command(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: "subprocess.Popen[str]") -> Any:
    """Return what a run measured, of a run that went to its end."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return json.loads(out)


@dataclass
class Bench:
    """Labs, and what was measured in them; those of a group are measured at the same time."""

    labs: dict[str, Lab]
    measured: dict[tuple[str, str, int], Any] = field(default_factory=dict[tuple[str, str, int], Any])

    def measure(self, truths: tuple[Truth, ...], direction: str, sessions: int) -> None:
        """Carry one case out on several links."""
        running = {
            truth.preset: begin(
                self.labs[truth.preset],
                *("--direction", direction, "--sessions", sessions, "--interval", 1 if truth in SLOW else 0.25),
                *("--seconds", truth.seconds, "--warmup", truth.warmup),
            )
            for truth in truths
        }
        for preset, process in running.items():
            self.measured[preset, direction, sessions] = finish(process)

    def rates(self, truth: Truth, direction: str, sessions: int) -> dict[str, float]:
        """Return the rates that were reported of a case, in Mb/s."""
        reported = self.measured[truth.preset, direction, sessions]["measured"]
        return {name: rate["mbit_s"] for name, rate in reported.items() if rate is not None}


@pytest.fixture(scope="module", autouse=True)
def _data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the runs of this module away from a person's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        yield


def build(stack: ExitStack, preset: str, faults: Faults = NO_FAULTS) -> Lab:
    """Build a preset's link; skip the test, and say why, where this machine cannot have labs."""
    try:
        return stack.enter_context(open_lab(plan_lab_link(CATALOG.find(preset), faults)))
    except LabUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Give a lab of each link."""
    with ExitStack() as stack:
        yield Bench({truth.preset: build(stack, truth.preset) for truth in (*SLOW, *FAST)})


def bounds(truth: Truth, direction: str) -> dict[str, tuple[float, float]]:
    """Return what may be reported of a direction.

    Acknowledgements take their part of the other direction: at most one for each second packet, as the
    wire model counts them, and at least none.
    """
    if direction != "duplex":
        exact = (truth.mbit_s * (1 - truth.within), truth.mbit_s * (1 + truth.within))
        return {direction: exact, "total": exact}
    derived = derive(CATALOG.find(truth.preset).link, "duplex", Variant(timestamps=True))
    assert derived is not None
    least, most = derived.bit_s / 1e6 * (1 - truth.within), 2 * truth.mbit_s * (1 + truth.within)
    return {"total": (least, most)}


def misses(rates: dict[str, float], allowed: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return the rates that are out of bounds."""
    return {n: (rates[n], allowed[n]) for n in allowed if not allowed[n][0] <= rates[n] <= allowed[n][1]}


# Each link, direction and number of sessions is in one of these. The whole matrix takes a minute more.
ALWAYS = {
    *((truth.preset, *case) for truth in SLOW for case in (("out", 1), ("in", 5))),
    *(("gbe-fd-1500", "in", 1), ("gbe-fd-9000", "duplex", 5)),
}


def matrix() -> Iterator[Any]:
    """Yield every case; those beyond a sample of them are for --every."""
    for group, cases in ((SLOW, CASES), *(((truth,), CASES) for truth in FAST)):
        for case in cases:
            for truth in group:
                marks = () if (truth.preset, *case) in ALWAYS else pytest.mark.every
                yield pytest.param(truth, group, *case, marks=marks)


@pytest.mark.parametrize(
    ("truth", "group", "direction", "sessions"),
    matrix(),
    ids=lambda value: (
        value.preset if isinstance(value, Truth) else None if isinstance(value, tuple) else str(value)
    ),
)
def test_the_reported_rate_is_the_wires(
    bench: Bench, truth: Truth, group: tuple[Truth, ...], direction: str, sessions: int
) -> None:
    """On each link, in each direction, for one session and for five."""
    allowed = bounds(truth, direction)
    if (truth.preset, direction, sessions) not in bench.measured:
        bench.measure(group, direction, sessions)
    for _ in range(MORE_TRIES):
        if misses(bench.rates(truth, direction, sessions), allowed):
            bench.measure((truth,), direction, sessions)
    assert not misses(bench.rates(truth, direction, sessions), allowed)


@pytest.mark.every
def test_the_rate_does_not_depend_on_the_sample_interval() -> None:
    """Three links of a kind, looked at ten times a second, twice, and once in two seconds."""
    exact = 100 * 1448 / 1538
    with ExitStack() as stack:
        labs = {interval: build(stack, "100mb-fd") for interval in (0.1, 0.5, 2)}
        running = {
            interval: begin(lab, "--interval", interval, "--seconds", 4, "--warmup", 0.5, "--direction", "in")
            for interval, lab in labs.items()
        }
        rates = {interval: finish(process)["measured"]["in"]["mbit_s"] for interval, process in running.items()}
    assert rates == {interval: pytest.approx(exact, rel=0.003) for interval in labs}


@pytest.mark.every
@pytest.mark.parametrize("direction", ["in", "out"])
def test_the_rate_of_many_sessions_on_a_slow_link_does_not_depend_on_the_sample_interval(direction: str) -> None:
    """At 1 Mb/s reports of eight sessions ten times a second took 2.6 % of the link from the payload."""
    options = ("--sessions", 8, "--seconds", 6, "--warmup", 2, "--direction", direction)
    with ExitStack() as stack:
        labs = {interval: build(stack, "10mb-fd", Faults(slow_percent=90)) for interval in (0.1, 1)}
        running = {interval: begin(lab, "--interval", interval, *options) for interval, lab in labs.items()}
        results = {interval: finish(process) for interval, process in running.items()}
    often, rarely = (result["measured"][direction]["mbit_s"] for result in results.values())
    assert often == pytest.approx(rarely, rel=0.012)


# Of 100 ms each way, so that what the relay is late by (a busy machine: 2 to 5 ms) is little of it.
LATE_MS = 100
ROUND_TRIPS_MS = {"rr": 2 * LATE_MS, "crr": 4 * LATE_MS}  # crr: one to connect, one to ask


def measure_latency() -> tuple[dict[str, float], dict[str, Any]]:
    """Return the latencies in ms that a link of 100 ms each way was reported to have, and those that it has."""
    truth = {f"{load} {flow}": ms for load, ms in ROUND_TRIPS_MS.items() for flow in ("out", "in")}
    truth["probe"] = 2 * LATE_MS
    within = {name: pytest.approx(ms, rel=0.03) for name, ms in truth.items()}
    found: dict[str, float] = {}
    with ExitStack() as stack:
        lab = build(stack, "100mb-fd", Faults(delay_ms=LATE_MS))
        for _ in range(1 + MORE_TRIES):
            timing = ("--direction", "duplex", "--seconds", 4, "--warmup", 0.5, "--sessions", 5)
            running = {load: begin(lab, "--workload", load, *timing) for load in ROUND_TRIPS_MS}
            measured = {load: finish(process)["measured"] for load, process in running.items()}
            found = {
                f"{load} {flow}": measured[load][flow]["latency_us"]["p50"] / 1_000
                for load in measured
                for flow in ("out", "in")
            }
            probed = finish(begin(lab, "--probe", "--seconds", 0.5))["latency"]
            found["probe"] = probed["idle_us"]["p50"] / 1_000
            if found == within:
                break
    return found, within


def measure_queue() -> Any:
    """Return the document of a probe under a stream on a line of 10 Mb/s."""
    with ExitStack() as stack:
        lab = build(stack, "10mb-fd")
        return finish(begin(lab, "--probe", "--seconds", 3, "--interval", 1))


def measure_half_duplex() -> Any:
    """Return the document of both directions on one medium of 10 Mb/s."""
    try:
        with ExitStack() as stack:
            return finish(begin(build(stack, "10mb-hd"), "--direction", "duplex", "--seconds", 3))
    except Exception as error:
        if "/dev/net/tun" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="module")
def light() -> Iterator[dict[str, Future[Any]]]:
    """Begin the measurements that carry little, at the same time: they wait far more than they work."""
    with ThreadPoolExecutor() as pool:
        yield {each.__name__: pool.submit(each) for each in (measure_latency, measure_queue, measure_half_duplex)}


@pytest.mark.every
def test_the_reported_latency_is_the_links(light: dict[str, Future[Any]]) -> None:
    """Nothing is subtracted: half of rr take a round trip, half of crr two, and so says a probe at rest."""
    found, within = light["measure_latency"].result()
    assert found == within


def test_a_stream_fills_the_queue_before_a_slow_line_and_the_probe_sees_it(light: dict[str, Future[Any]]) -> None:
    """A line of 10 Mb/s takes 1.2 ms for each packet, and several wait there before a request of the probe's."""
    document = light["measure_queue"].result()
    latency = document["latency"]
    assert latency["loaded_us"]["p50"] > 3 * latency["idle_us"]["p50"]
    assert latency["loaded_us"]["p50"] > 1_230
    assert document["measured"]["out"]["transactions_s"] is None


LAB = (sys.executable, "-P", "-m", "linkgauge", "lab")
CHECKS = {
    "as it should be": ("100mb-fd",),
    "ten per cent slow": ("100mb-fd", "--slow", "10"),
    "wrong MTU": ("atm155-9180", "--wrong-mtu", "1500"),
    "lossy": ("10mb-fd", "--loss", "2"),
}


def begin_check(arguments: tuple[str, ...]) -> "subprocess.Popen[str]":
    """Start a check in a lab of its own, as a person does."""
    command = (*LAB, *arguments, "--check", "--json", "--", "--seconds", "2")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_check(process: "subprocess.Popen[str]") -> tuple[int, Any]:
    """Return exit status and document of a check."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert out, err
    return process.returncode, json.loads(out)


@pytest.fixture(scope="module")
def checks(bench: Bench) -> dict[str, tuple[int, Any]]:
    """Give exit status and document of checks that run at the same time."""
    started = {name: begin_check(arguments) for name, arguments in CHECKS.items()}
    return {name: finish_check(process) for name, process in started.items()}


def test_a_link_that_is_as_it_should_be_passes(checks: dict[str, tuple[int, Any]]) -> None:
    """The exit status is 0."""
    status, document = checks["as it should be"]
    assert (status, document["verdict"]) == (0, "pass")


def test_a_link_that_is_ten_per_cent_slow_is_short(checks: dict[str, tuple[int, Any]]) -> None:
    """With exit status 1, for scripts."""
    name, carried = "ten per cent slow", pytest.approx(90 * 1448 / 1538, rel=0.01)
    for _ in range(MORE_TRIES):
        if checks[name][1]["measured"]["out"]["mbit_s"] != carried:
            checks[name] = finish_check(begin_check(CHECKS[name]))
    status, document = checks[name]
    assert (status, document["verdict"]) == (1, "short")
    assert document["measured"]["out"]["mbit_s"] == carried


def test_the_transfer_time_ratio_is_that_of_the_link(checks: dict[str, tuple[int, Any]]) -> None:
    """The line as it should be, in what it carries for a preset without timestamps; a tenth less takes longer."""
    for name, carried in (("as it should be", 1.0), ("ten per cent slow", 0.9)):
        document = checks[name][1]
        ideal = 100 * 1460 / 1538
        assert document["tcp"]["transfer_time_ratio"] == pytest.approx(
            ideal / document["measured"]["out"]["mbit_s"], rel=0.001
        )
        assert document["tcp"]["transfer_time_ratio"] == pytest.approx(1460 / 1448 / carried, rel=0.02)


def test_the_efficiency_is_what_the_link_does_not_lose(checks: dict[str, tuple[int, Any]]) -> None:
    """Of a lossy link that is 2 %, as far as a few hundred packets can show; of another one next to nothing."""
    assert 90 < checks["lossy"][1]["tcp"]["efficiency_percent"] < 99.7
    assert checks["as it should be"][1]["tcp"]["efficiency_percent"] > 98


def test_the_buffer_delay_is_the_queue_of_the_link(light: dict[str, Future[Any]]) -> None:
    """A stream waits in the queue before a slow line, as the probe does. So near a path may have no percentage."""
    document = light["measure_queue"].result()
    tcp, idle_ms = document["tcp"], document["latency"]["idle_us"]["min"] / 1_000
    assert tcp["buffer_delay_ms"] > 1.2
    percent = tcp["buffer_delay_percent"]
    assert idle_ms < 0.2 if percent is None else 0 < 100 * tcp["buffer_delay_ms"] / percent <= 1.001 * idle_ms


def test_a_link_with_a_wrong_mtu_is_named_as_such(checks: dict[str, tuple[int, Any]]) -> None:
    """Both MTUs are, and which end has which."""
    _status, document = checks["wrong MTU"]
    warnings = [text for text in document["warnings"] if text.startswith("MTU: ")]
    assert len(warnings) == 1
    assert "local near0 has 9180, remote far0 has 1500" in warnings[0]


def test_a_half_duplex_link_carries_its_line_once(light: dict[str, Future[Any]]) -> None:
    """Both directions and all acknowledgements together, on one medium."""
    derived = derive(CATALOG.find("10mb-hd").link, "duplex", Variant(timestamps=True))
    assert derived is not None
    measured = light["measure_half_duplex"].result()["measured"]
    assert measured["total"]["mbit_s"] <= 10 * 1448 / 1538
    assert measured["total"]["mbit_s"] == pytest.approx(derived.bit_s / 1e6, rel=0.1)


def test_nothing_of_it_left_this_process_where_it_was_not() -> None:
    """All load was sent between namespaces of the labs' own."""
    assert os.stat("/proc/self/ns/net") == os.stat(f"/proc/{os.getppid()}/ns/net")  # noqa: PTH116
    assert not Path("/sys/class/net/near0").exists()
