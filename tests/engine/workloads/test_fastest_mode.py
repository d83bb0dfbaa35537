"""The faster mode of this host: the trial, its stored result, and the run that uses it."""

import asyncio
import json
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host.machine_measurements import identify_machine
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Opened, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MIB, SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.engine.workloads import fastest_mode
from linkgauge.engine.workloads.fastest_mode import ModeChooser, ModeTrial, try_modes

pytestmark = pytest.mark.usefixtures("fork_server")

DEADLINE_S = 20.0
KEPT = {Mode.COPY: ModeTrial(2_000, 1_000), Mode.SENDFILE: ModeTrial(1_000, 2_000)}


def save(directory: Path, mode: Mode, key: str | None = None) -> Path:
    """Write a trial as an earlier run would have; return the file."""
    trial = KEPT[mode]
    document = {"copy_bit_s": trial.copy_bit_s, "sendfile_bit_s": trial.sendfile_bit_s}
    path = directory / "fastest-mode.json"
    path.write_text(json.dumps({key or identify_machine().key: document}))
    return path


def names(directory: Path) -> list[str]:
    """Return the names of a directory's files."""
    return [path.name for path in directory.iterdir()]


async def modes_of(plan: Plan, chooser: ModeChooser, *, mode: Mode | None = None) -> dict[End, set[Mode]]:
    """Return the modes of each end's sessions in a run whose far end has this chooser."""
    modes: dict[End, set[Mode]] = {End.NEAR: set(), End.FAR: set()}
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listen("127.0.0.1", 0), mode_chooser=chooser) as endpoint,
        open_run(plan, Peer(*endpoint.address), mode=mode) as run,
    ):
        async for event in run:
            if isinstance(event, Opened):
                modes[event.facts.end].add(event.facts.mode)
            elif isinstance(event, Sampled):
                run.stop()
    return modes


def test_a_trial_measures_both_modes_and_leaves_nothing() -> None:
    """Both threads have ended, and all of its descriptors are closed."""
    threads, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    trial = try_modes()
    assert trial is not None
    assert min(trial.copy_bit_s, trial.sendfile_bit_s) > 8 * MIB  # not one slot was empty
    assert (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))) == (threads, descriptors)


@pytest.mark.parametrize("mode", list(KEPT))
async def test_the_faster_mode_of_an_earlier_trial_is_chosen(tmp_path: Path, mode: Mode) -> None:
    """Without another trial: the file stays as it is."""
    path = save(tmp_path, mode)
    text = path.read_text()
    assert await ModeChooser(tmp_path).choose() is mode
    assert path.read_text() == text


async def test_a_trial_is_kept_beside_those_of_other_machines(tmp_path: Path) -> None:
    """A home directory may be shared, and another kernel is another machine."""
    path = save(tmp_path, Mode.COPY, key="db-02 Linux 6.1 64")
    mode = await ModeChooser(tmp_path).choose()
    trials = json.loads(path.read_text())
    assert set(trials) == {"db-02 Linux 6.1 64", identify_machine().key}
    here = trials[identify_machine().key]
    assert mode is (Mode.SENDFILE if here["sendfile_bit_s"] > here["copy_bit_s"] else Mode.COPY)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 60_000, '{"KEY": 5}', '{"KEY": {"copy_bit_s": "1", "sendfile_bit_s": 2}}', '{"KEY": {}}'],
)
async def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    """The next trial replaces it."""
    path = tmp_path / "fastest-mode.json"
    path.write_text(text.replace("KEY", identify_machine().key))
    assert await ModeChooser(tmp_path).choose(is_idle=False) is Mode.COPY
    await ModeChooser(tmp_path).choose()
    assert json.loads(path.read_text())[identify_machine().key]["copy_bit_s"] > 0


async def test_a_busy_host_makes_no_trial(tmp_path: Path) -> None:
    """It would disturb the runs that are there. The next run that finds it idle makes one."""
    chooser = ModeChooser(tmp_path)
    assert await chooser.choose(is_idle=False) is Mode.COPY
    assert names(tmp_path) == []
    await chooser.choose()
    assert names(tmp_path) == ["fastest-mode.json"]


async def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """The choice is good for this process."""
    file = tmp_path / "file"
    file.write_text("")
    chooser = ModeChooser(file / "cache")
    assert await chooser.choose() is await chooser.choose()


async def test_a_host_without_loopback_copies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a network namespace whose loopback is down: every connection is refused there."""

    def refuse(*_arguments: Any, **_options: Any) -> socket.socket:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(fastest_mode.socket, "create_server", refuse)
    assert await ModeChooser(tmp_path).choose() is Mode.COPY
    assert names(tmp_path) == []


@pytest.mark.parametrize("workload", [Workload.STREAM, pytest.param(Workload.RR, marks=pytest.mark.every)])
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("named", [None, Mode.COPY, Mode.DISCARD])
async def test_each_end_sends_in_its_own_fastest_mode(
    tmp_path: Path, named: Mode | None, direction: Direction, workload: Workload
) -> None:
    """A mode that the plan names counts, and transactions copy."""
    save(tmp_path, Mode.SENDFILE)
    plan = Plan(
        settings=Settings(direction=direction),
        workload=workload,
        duration_ns=None,
        interval_ns=SECOND_NS // 20,
        mode=named,
        rate_bit_s=100_000_000 if workload is Workload.STREAM else None,
    )
    modes = await modes_of(plan, ModeChooser(tmp_path))
    far_mode = Mode.SENDFILE if workload is Workload.STREAM else Mode.COPY
    assert modes == {End.NEAR: {named or Mode.COPY}, End.FAR: {named or far_mode}}


async def test_both_ends_of_one_host_take_the_choice_of_the_near_end(tmp_path: Path) -> None:
    """They would measure the same, and the second trial would be made for nothing."""
    save(tmp_path, Mode.COPY)
    plan = replace(Plan(), duration_ns=None, interval_ns=SECOND_NS // 20, rate_bit_s=100_000_000)
    modes = await modes_of(plan, ModeChooser(tmp_path), mode=Mode.SENDFILE)
    assert modes == {End.NEAR: {Mode.SENDFILE}, End.FAR: {Mode.SENDFILE}}
