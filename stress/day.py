"""The memory of a day: what both ends and the app keep of a run that lasts one, in fake time and without sockets.

Usage: .venv/bin/python stress/day.py [--hours 24] [--sessions 1] [--bound-mib 8] [--only NAME,NAME]

Each subject gets a day of both ends' samples, or of an endpoint's clients, in a process of its own: the real
sums, traces and states. Every half hour the settings change. Prints the memory (proportional set size)
after each twelfth of the time. Exits with 1 if a subject has grown by more than the bound from the first of them to
the last.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from linkgauge.engine.far.clients.admission import Admission
from linkgauge.engine.far.event_log import EventLog
from linkgauge.engine.far.status import ClientStatus, EndpointStatus, LogEntry, RunStatus
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import RequestDeclined
from linkgauge.engine.model.events import Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run_events import Timeline
from linkgauge.engine.protocol.peer_validation import PeerValidator
from linkgauge.engine.results.csv_export import CsvWriter
from linkgauge.engine.results.json_stream import event_lines
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.diagnosis.live import LiveDiagnosis
from linkgauge.tui.endpoint.endpoint_log import EndpointLog
from linkgauge.tui.endpoint.endpoint_rates import EndpointInfo, EndpointRates
from linkgauge.tui.readings.live_readings import LiveReadings
from processes import resident_mib
from recorded_run import TICK_NS, recorded_events

_HOUR_TICKS = 3_600 * SECOND_NS // TICK_NS
_CHANGE_TICKS = _HOUR_TICKS // 2
_MARKS = 12  # of the time, at which memory is printed

Feed = Callable[[Event], None]


def _changing(events: Iterator[Event], sessions: int) -> Iterator[Event]:
    """Change the settings every half hour, as a near end would stamp the samples."""
    timeline: Timeline | None = None
    for event in events:
        if isinstance(event, Started):
            timeline = Timeline(event.plan, lambda _settings: Expectation())
        elif isinstance(event, Sampled) and timeline is not None:
            at = event.sample.index
            if event.sample.end is End.NEAR and at and at % _CHANGE_TICKS == 0:
                direction = Direction.DUPLEX if at // _CHANGE_TICKS % 2 else Direction.OUT
                yield timeline.change_settings(event.sample.elapsed_ns - TICK_NS, Settings(direction, sessions))
            event = timeline.stamp(event.sample)  # noqa: PLW2901 - the same sample, stamped
        yield event


# The near end and the app


def _meter() -> Feed:
    meter = Meter()
    ticks = count()

    def feed(event: Event) -> None:
        for _interval in meter.feed(event):
            if not next(ticks) % 400:
                meter.summary()

    return feed


def _diagnosis() -> Feed:
    meter = Meter()
    diagnosis = LiveDiagnosis(meter, without_target=True)
    ticks = count()

    def feed(event: Event) -> None:
        meter.feed(event)
        if not next(ticks) % 400 and isinstance(event, Sampled):
            diagnosis.current_findings  # noqa: B018 - as the cockpit reads it

    return feed


def _readings() -> Feed:
    readings: list[LiveReadings] = []
    ticks = count()

    def feed(event: Event) -> None:
        if isinstance(event, Started):
            readings.append(LiveReadings(event.plan))
        readings[0].meter.feed(event)
        readings[0].log.add_event(event)
        if not next(ticks) % 400:
            readings[0].session_rows()

    return feed


def _validator() -> Feed:
    checks: list[PeerValidator] = []

    def feed(event: Event) -> None:
        if isinstance(event, Started):
            checks.append(PeerValidator(event.plan))
        elif isinstance(event, Sampled) and event.sample.end is End.NEAR:
            checks[0].add_near_sample(event.sample)
        elif isinstance(event, Sampled):
            checks[0].check_far_sample(event.sample, event.sample.elapsed_ns)

    return feed


def _csv_and_json() -> Feed:
    meter = Meter()
    csv = CsvWriter.append(Path(os.devnull))

    def feed(event: Event) -> None:
        intervals = meter.feed(event)
        csv.write(meter, intervals, run_id="day", preset="")
        for _line in event_lines(event, intervals, meter, run_id="day", preset=None):
            pass

    return feed


_NEAR: dict[str, Callable[[], Feed]] = {
    "meter": _meter,
    "diagnosis": _diagnosis,
    "app readings": _readings,
    "peer validation": _validator,
    "CSV and JSON lines": _csv_and_json,
}


# The endpoint: a client each second, and ten strangers


def _endpoint_second(second: int, admission: Admission, log: EventLog, rates: EndpointRates) -> None:
    with ExitStack() as stack:
        for number in range(10):
            address = f"10.{second % 251}.{number}.{second // 251 % 251}"
            log.log_entry(LogEntry("dropped", "rejected: not a linkgauge client", client=address))
        try:
            client = stack.enter_context(admission.admit(f"192.0.2.{second % 200}", second * SECOND_NS))
        except RequestDeclined as error:
            raise RuntimeError("the endpoint keeps clients") from error
        client.hostname = f"host-{second}"
        log.log_entry(LogEntry("client", "connected", client=client.address, hostname=client.hostname))
        run = RunStatus(Workload.STREAM, Settings(), None, SECOND_NS, second * 10**6, 0)
        status = EndpointStatus(
            second * SECOND_NS,
            tuple(replace(each.get_status(), run=run) for each in admission.admitted_clients),
            10,
            Limits(),
        )
        if not all(isinstance(each, ClientStatus) for each in status.clients):
            raise RuntimeError("a client without a status")
        rates.update(status)
    log.log_entry(LogEntry("run_ended", "finished", client="192.0.2.1", bytes=10**6, reason="completed"))


async def _endpoint(hours: float, mark: Callable[[], None]) -> None:
    shown = EndpointLog(lambda: datetime.now(UTC))
    log = EventLog(shown.append_entry, interval_s=0.01)
    admission = Admission()
    rates = EndpointRates(EndpointInfo("db-02", "db-02:5820", "key", "linkgauge check db-02"))
    seconds = round(hours * 3_600)
    for second in range(seconds):
        _endpoint_second(second, admission, log, rates)
        if not second % 60:
            await asyncio.sleep(0.02)  # the summary of a minute
        if (second + 1) * _MARKS % seconds < _MARKS:
            mark()
    log.close()


# The measurement


def _measure(name: str, hours: float, sessions: int) -> tuple[str, list[float], float]:
    """Feed a subject; return its memory at each mark, MiB, and the seconds that it took."""
    memory: list[float] = []
    began = time.monotonic()

    def mark() -> None:
        gc.collect()
        memory.append(resident_mib(os.getpid()))

    if name == "endpoint":
        asyncio.run(_endpoint(hours, mark))
    else:
        feed, ticks = _NEAR[name](), round(hours * _HOUR_TICKS)
        for event in _changing(recorded_events(ticks, Settings(Direction.OUT, sessions)), sessions):
            feed(event)
            if isinstance(event, Sampled) and event.sample.end is End.FAR:
                at = event.sample.index + 1
                if at * _MARKS % ticks < _MARKS:
                    mark()
    return name, memory, time.monotonic() - began


def main() -> int:
    """Feed every subject, and print its memory; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--bound-mib", type=float, default=8.0)
    parser.add_argument("--only", help=f"some of endpoint, {', '.join(_NEAR)}")
    options = parser.parse_args()
    names = ["endpoint", *_NEAR] if options.only is None else options.only.split(",")
    is_clean = True
    print(f"{options.hours:g} hours of {options.sessions} sessions; MiB after each twelfth of it")
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        work = partial(_measure, hours=options.hours, sessions=options.sessions)
        for name, memory, took_s in pool.imap_unordered(work, names):
            grew = memory[-1] - memory[0]
            is_clean = is_clean and grew <= options.bound_mib
            marks = " ".join(f"{mib:.0f}" for mib in memory)
            verdict = "ok" if grew <= options.bound_mib else f"GREW by more than {options.bound_mib:g} MiB"
            print(f"{name:20} {marks}  grew by {grew:.1f} MiB  {verdict}  ({took_s:.0f} s)", flush=True)
    print("CLEAN" if is_clean else "NOT CLEAN")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
