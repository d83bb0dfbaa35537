"""A scripted source of events: what the app meets in its tests instead of a network.

It is a real source in every way the app can see: events come in order, changes and stops are answered by
events, a real meter is fed with all of them. Only the numbers are made up, the same ones each time.
"""

# Textual's types leave open of what an app is.
# pyright: reportUnknownMemberType=false

import asyncio
import io
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.events import Changed, Ended, Event, Opened, Reason, RunEnd, Sampled, Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.latency_histogram import bucket_of
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from linkgauge.engine.model.samples import CoreTimes, LatencyCounts, ProbeSample, Sample, SessionSample
from linkgauge.engine.model.socket_info import SocketInfo
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.evidence import link_evidence
from linkgauge.presets.diagnosis.live import LiveDiagnosis
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.preset import Preset
from linkgauge.presets.verdict import judge
from linkgauge.presets.wire import DEFAULT_VARIANT
from linkgauge.tui.app import LinkgaugeApp
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.rendering.diff_compositor import screen_strips
from linkgauge.tui.services.preferences import LoadedPreferences, Preferences, save_preferences
from linkgauge.tui.services.run_session import run_document
from linkgauge.tui.widgets.common.typed_input import Debounce
from textual.pilot import Pilot

INTERVAL_NS = SECOND_NS // 4
NEAR = HostInfo("web-07", "Linux 6.18", 8, "linkgauge 0.1.0", "uvloop")
FAR = HostInfo("db-02", "Linux 6.12", 16, "linkgauge 0.1.0", "uvloop")


def flutter(index: int) -> float:
    """Return a factor a little around one, always the same for an index."""
    return 1 + ((index * 7919) % 13 - 6) / 400


def cores(of: int, hot: int, busy: float) -> tuple[CoreTimes, ...]:
    """Return an interval of a host with one hot core; the others do a fraction of its work."""
    made: list[CoreTimes] = []
    for core in range(of):
        share = busy if core == hot else busy * ((core * 37) % 11) / 22
        whole = int(INTERVAL_NS * share)
        made.append(CoreTimes(whole // 5, whole * 3 // 5, whole // 5, 0, INTERVAL_NS - whole))
    return tuple(made)


class Script:
    """Makes the events of a run at a given rate, interval by interval, and hands them to the app."""

    def __init__(self, preset: Preset, plan: Plan) -> None:
        self.preset = preset
        self.plan = plan
        self.settings = plan.settings
        self.index = 0
        self.warm_until = plan.effective_warmup_ns
        self.queue: asyncio.Queue[Event] = asyncio.Queue()
        self.changes: list[Settings] = []
        self.stops: list[Reason] = []
        self.run_id = "20261121-014629-7f3a"
        self.marks: list[float] = []
        self.meter = Meter()
        self.diagnosis = LiveDiagnosis(link_evidence(preset, DEFAULT_VARIANT))
        self.notices: list[str] = []
        self.closed = False
        self.took_ns: tuple[int, ...] = ()  # each interval's transactions, or the probe's

    # What the app may do.

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield events until Ended."""
        while True:
            event = await self.queue.get()
            self.meter.feed(event)
            self.diagnosis.feed(event)
            yield event
            self.queue.task_done()
            if isinstance(event, Ended):
                return

    def change_settings(self, settings: Settings) -> None:
        """Answer with a Changed event, as the engine does."""
        self.changes.append(settings)
        self.settings = settings
        self.warm_until = self.elapsed_ns + self.plan.effective_warmup_ns
        self.emit(Changed(self.elapsed_ns, settings, find_expectation(self.preset, settings)))

    def set_pass_mark(self, pass_percent: float) -> None:
        """Remember it."""
        self.marks.append(pass_percent)

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """Answer with Ended."""
        self.stops.append(reason)
        self.end(reason, detail or "you stopped the run")

    # What the test may do.

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval."""
        return self.index * INTERVAL_NS

    def emit(self, *events: Event) -> None:
        """Let these events happen."""
        for event in events:
            self.queue.put_nowait(event)

    def start(self, peer: Peer) -> None:
        """Let the run start, with a socket opened at each end."""
        expected = find_expectation(self.preset, self.settings, self.plan.workload)
        idle = _counted((310_000, 340_000, 350_000, 620_000)) if self.plan.probe else None
        probed = ProbeSample(idle, SECOND_NS, 340) if idle else None
        self.emit(Started("2026-11-21T01:46:29Z", str(peer), NEAR, FAR, self.plan, expected, probed))
        for end in End:
            self.emit(
                Opened(
                    SocketInfo(end, Direction.OUT, 1, "cubic", self.settings.window_bytes, 1448, True, True, True)
                )
            )

    def run_for(self, intervals: int, bit_s: float, *, far_busy: float = 0.61, near_busy: float = 0.97) -> None:
        """Let intervals pass in which each direction carries about `bit_s`."""
        for _ in range(intervals):
            self.index += 1
            for end, busy, hosts in ((End.NEAR, near_busy, NEAR), (End.FAR, far_busy, FAR)):
                sample = Sample(
                    end,
                    self.index - 1,
                    self.elapsed_ns,
                    INTERVAL_NS,
                    tuple(self._sessions(end, bit_s)),
                    cores(hosts.cores, 3, busy * flutter(self.index)),
                    int(INTERVAL_NS * busy * 0.4),
                    **self._latency(end),
                )
                self.emit(Sampled(sample, self.settings, self.elapsed_ns <= self.warm_until))

    def end(self, reason: Reason = Reason.COMPLETED, detail: str = "the duration was up") -> None:
        """Let the run end."""
        self.emit(Ended(RunEnd(reason, detail)))

    def _latency(self, end: End) -> dict[str, Any]:
        """Return how long things took: the probe's at the near end, transactions' at the end that asks."""
        counted = _counted(self.took_ns)
        if self.plan.probe and end is End.NEAR:
            return {"probe": ProbeSample(counted, INTERVAL_NS, 24_000)}
        if self.plan.workload.is_transactional and sender_of(Direction.OUT, self.plan.workload) is not end:
            return {"latency": (counted,)}
        return {}

    def _sessions(self, end: End, bit_s: float) -> Iterable[SessionSample]:
        of = self.settings.sessions
        for flow in self.settings.direction.flows:
            for session in range(1, of + 1):
                share = flutter(self.index + session * 3) * bit_s / of
                carried = int(share * INTERVAL_NS / SECOND_NS / 8)
                if sender_of(flow, self.plan.workload) is end:
                    sent = int(self.index % 16 == 5 and session == 2)
                    rtt = 212 + (session * 31 + self.index) % 90
                    yield SessionSample(flow, session, carried, sent, rtt, 1_448 * (420 + session), 1448)
                else:
                    yield SessionSample(flow, session, carried)


def _counted(took_ns: tuple[int, ...]) -> LatencyCounts:
    """Return how long some transactions took as counts, a hundred for each."""
    buckets = sorted({bucket_of(ns) for ns in took_ns})
    counts = tuple(100 * sum(bucket_of(ns) == bucket for ns in took_ns) for bucket in buckets)
    return LatencyCounts(Direction.OUT, tuple(buckets), counts)


class Cockpit:
    """The app under test, as somebody in front of it: presses keys and reads the screen."""

    def __init__(self, world: "World", app: LinkgaugeApp, pilot: Pilot[None]) -> None:
        self.world = world
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, and let all they bring about happen."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until every event that was emitted is on the screen, and all that a key has asked for."""
        await self.pilot.pause()
        await put_off(self.pilot)
        waiting = [script for script in self.world.scripts if not script.closed]
        for script in waiting:
            await script.queue.join()
        if waiting:
            await self.pilot.pause()

    async def end(self) -> None:
        """Wait until the workers are done, and what they posted is on the screen."""
        await self.app.workers.wait_for_complete()
        await self.settle()

    def text(self) -> str:
        """Return what is on the screen, with plain spaces."""
        strips = screen_strips(self.app.screen)
        return "\n".join(strip.text for strip in strips).replace("\u00a0", " ")

    def line(self, number: int) -> str:
        """Return one line of the screen."""
        return self.text().splitlines()[number]


async def put_off(pilot: Pilot[None]) -> None:
    """Wait until nothing is put off any more until a person's hands rest."""
    while any(isinstance(one, Debounce) and one.is_pending for one in vars(pilot.app.screen).values()):
        await pilot.pause(0.01)


class World:
    """The three ports of the app, scripted; and a clock that stands still."""

    def __init__(self) -> None:
        self.catalog = load_catalog()
        self.scripts: list[Script] = []
        self.exports: list[tuple[list[str], str, Path]] = []
        self.history: RunLog | None = None
        self.probed: list[Peer] = []
        self.found = LoadedPreferences()
        self.settings_dir: Path | None = None
        self.refusal: PeerError | None = None
        self.now_ns = 0
        self.on_start: Callable[[Script], None] = lambda _script: None

    @property
    def script(self) -> Script:
        """The newest run."""
        return self.scripts[-1]

    @asynccontextmanager
    async def start_run(self, plan: Plan, preset: Preset, peer: Peer) -> AsyncGenerator[Script]:
        """Open a run, or refuse it."""
        if self.refusal is not None:
            raise self.refusal
        script = Script(preset, plan)
        self.scripts.append(script)
        script.start(peer)
        self.on_start(script)
        try:
            yield script
        finally:
            script.closed = True

    async def probe(self, peer: Peer) -> HostInfo:
        """Answer as the far end, or refuse."""
        self.probed.append(peer)
        if self.refusal is not None:
            raise self.refusal
        return FAR

    def export(self, run_ids: Sequence[str], form: str, path: Path) -> Path:
        """Write the runs' names, which is all a test needs to see."""
        self.exports.append((list(run_ids), form, path))
        path.write_text("\n".join(["run_id", *run_ids, ""]))
        return path

    def keep(self, preferences: Preferences) -> Path | None:
        """Keep what is set, where a test has a place for it."""
        return None if self.settings_dir is None else save_preferences(self.settings_dir, preferences)

    def script_of(self, preset: Preset, plan: Plan) -> Script:
        """Return a script that has started, for a test without an app."""
        script = Script(preset, plan)
        script.start(LOOPBACK)
        return script

    def app(self, preset: str = "10gbe-fd-1500", peer: Peer = LOOPBACK, plan: Plan | None = None) -> LinkgaugeApp:
        """Return the real app in this world. Its clock leaps, so that no frame is put off."""
        return LinkgaugeApp(
            self.catalog,
            peer,
            start_run=self.start_run,
            query_host_info=self.probe,
            export=self.export,
            history=self.history,
            initial_plan=plan or Plan(duration_ns=30 * SECOND_NS),
            initial_preset=self.catalog.find(preset),
            clock=self._leap,
            loaded=self.found,
            save=self.keep,
        )

    @asynccontextmanager
    async def cockpit(
        self, size: tuple[int, int] = (80, 24), app: LinkgaugeApp | None = None, **of: Any
    ) -> AsyncGenerator[Cockpit]:
        """Run the app without a terminal, for half a minute at most."""
        app = app or self.app(**of)
        async with asyncio.timeout(30), app.run_test(size=size) as pilot:
            cockpit = Cockpit(self, app, pilot)
            await cockpit.settle()
            yield cockpit

    @staticmethod
    async def still(pilot: Pilot[None], *, ends: bool = False) -> None:
        """Wait until the screen is the same a few times over: one message may bring another, and a new layout.

        `ends` waits for the workers, too.
        """
        seen: list[list[Any]] = []
        async with asyncio.timeout(30):
            while len(seen) < 4 or any(seen[-1] != earlier for earlier in seen[-4:-1]):
                if ends:
                    await pilot.app.workers.wait_for_complete()
                await put_off(pilot)
                await pilot.pause()
                seen.append(screen_strips(pilot.app.screen))

    def _leap(self) -> int:
        self.now_ns += SECOND_NS
        return self.now_ns


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give a function that carries a command out here: a process of its own takes a second of each test."""

    def carry_out(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.StringIO())
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = run_command_line(arguments)
        texts = [stream.buffer.getvalue().decode() for stream in (out, err) if not stream.flush()]
        return subprocess.CompletedProcess(arguments, status, *texts)

    return carry_out


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """Make a fresh scripted world, whatever the terminal of the person who runs the tests can do."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    return World()


def keep_run(log: RunLog, run_id: str, script: Script, *, peer: str = "db-02", label: str | None = None) -> None:
    """Keep a scripted run, as it would have been kept."""
    meter = Meter()
    preset = script.preset.id
    log.begin(run_id, preset, peer, label=label)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        if isinstance(event, Started):
            began = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
            event = replace(event, started_utc=f"{began:%Y-%m-%dT%H:%M:%SZ}")
        meter.feed(event)
        log.add(run_id, event)
    meter.flush()
    summary = meter.summary()
    verdict = judge(summary)
    log.finish(run_id, verdict.word, run_document(summary, verdict, run_id, preset, label))


@pytest.fixture
def kept(world: World, tmp_path: Path) -> Iterator[RunLog]:
    """Give a log of four runs, and let the app have it: as expected, short, changed half-way, and cut off."""
    runs = (
        ("20261118-091200-a2b3", "10gbe-fd-1500", "db-02", "before", Settings(sessions=5), 9.38e9),
        ("20261119-221030-c4d5", "10gbe-fd-1500", "db-03", None, Settings(window_bytes=57_344), 5.5e9),
        ("20261120-070000-e6f7", "gbe-fd-1500", "db-02:6000", "after the new cable", Settings(), 940e6),
    )
    with RunLog.open(tmp_path / "kept") as log:
        for run_id, preset, peer, label, settings, bit_s in runs:
            script = world.script_of(world.catalog.find(preset), Plan(settings, duration_ns=30 * SECOND_NS))
            script.run_for(60, bit_s)
            if settings == Settings():
                script.change_settings(settings.with_changes(sessions=5))
                script.run_for(30, bit_s)
            script.end()
            keep_run(log, run_id, script, peer=peer, label=label)
        script = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan())
        script.run_for(8, 9.3e9)
        script.end(Reason.PEER_LOST, "the far end said nothing for 5 s")
        keep_run(log, "20261121-014629-g8h9", script)
        assert log.flush()
        world.history = log
        yield log
