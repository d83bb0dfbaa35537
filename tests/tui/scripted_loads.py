"""Responsiveness tests of the app: scripted runs with the made-up loads of the engine's tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linkgauge.engine.model.counters.path_trace import PathTrace
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Ended, PathTraced, Sampled, Started
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.presets.expectation import find_expectation
from linkgauge.tui.run.cockpit_state import CockpitState

from ..engine.results.responsiveness_runs import Link
from .scripted_run import FAR, NEAR, ScriptedRun, core_times, variation

QUEUE_MS = {Direction.OUT: 45.0, Direction.IN: 0.7}


def filling(flow: Direction, at_s: float) -> float:
    """Return the delay of a queue on the way out that fills within two seconds, and then saws."""
    full = min(1.0, at_s / 2)
    saw = 1 - 0.12 * (at_s % 1.3) if full == 1.0 else 1.0
    return QUEUE_MS[flow] * full * saw


QUEUE_OUT = Link(filling)


A_LOAD = 25  # intervals


def emit_loads(
    script: ScriptedRun, link: Link = QUEUE_OUT, most: int | None = None, traces: Sequence[PathTrace] = ()
) -> None:
    """Emit the loads of a test over a link: all of them, or only the first intervals; traces at their end."""
    for event in link.events():
        match event:
            case Started():
                continue
            case Changed():
                script.settings = event.settings
                expected = find_expectation(script.preset, event.settings, script.plan.workload)
                script.emit(replace(event, expectation=expected))
            case Sampled(sample=sample):
                if most is not None and sample.index >= most:
                    return
                script.index = sample.index + 1
                host, busy = (NEAR, 0.31) if sample.end is End.NEAR else (FAR, 0.22)
                cores = core_times(host.cores, 3, busy * variation(sample.index))
                script.emit(replace(event, sample=replace(sample, cores=cores)))
            case Ended():
                script.emit(*map(PathTraced, traces))
                script.end()
            case _:
                script.emit(event)


def state_after(world: Any, most: int | None, *, is_stopped: bool = False) -> CockpitState:
    """Return the state after some intervals of a test, or after all of it."""
    preset, plan = world.catalog.find("100mb-fd"), responsiveness_plan()
    state = CockpitState(LOOPBACK, Plan(Settings(sessions=3)), preset, 95.0)
    state.begin_run(plan)
    script = ScriptedRun(preset, plan)
    state.run_opened(script)
    script.start(LOOPBACK)
    emit_loads(script, most=most)
    if is_stopped:
        script.stop(Reason.STOPPED)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        script.meter.feed(event)
        state.handle_event(event)
    if most is None or is_stopped:
        state.run_ended(script.meter.summary())
    return state
