"""What every test shares: nothing may be left behind."""

import asyncio
import gc
import os
import signal
import subprocess
import time
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, settings
from linkgauge.engine.host.cpu import read_core_times, subtract_core_times
from linkgauge.engine.model.counters.samples import CoreTimes
from linkgauge.engine.workers.fork_client import ForkServerLease

from .command_process import CommandProcess

# How long an example takes says how busy the machine is, and nothing about the code. The same examples every time:
# stress/fuzz.py is the place for new ones.
settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# A hundred examples take 25 s of CPU in all.
settings.register_profile("make test", settings.get_profile("any machine"), max_examples=30)

_MARK = f"LINKGAUGE_TESTS={os.getpid()}"
# The trial of the modes takes a tenth of a second of two cores, once: in a test's own folder, each would make one.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / "build" / "cache")
_PATIENCE_S = 10.0
LARGER = {(120, 40), (200, 60)}
TUI = Path(__file__).parent / "tui"
_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}
_MOST_STOLEN = 0.05
STOLEN = "of this machine's time was stolen meanwhile"
MOST_RESCUED = 3
_CORES = pytest.StashKey[tuple[CoreTimes, ...] | None]()
_SLOWED = "linkgauge/slowed"  # failed while time was stolen: kept from the first try for the second
_slowed: set[str] = set()


def _marked_processes() -> dict[int, str]:
    """Return every process of the machine that descends from this test run, orphans included."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            if pid != os.getpid() and _MARK.encode() in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command:  # a zombie has none: its parent will reap it
                    found[pid] = command
        except OSError:
            continue
    return found


# A shell that starts the tests in the background, and nohup, have signals ignored, and what is ignored is
# handed down: tests that press Ctrl-C would press it in vain.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note where the machine's clocks are when a test begins."""
    item.stash[_CORES] = read_core_times()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note of a failed test whether this machine was not let run meanwhile, and skip it if it measures.

    Emulated lines stood still as well: three of six links were missed so while vmstat(8) showed 5 to 72 % stolen.
    """
    report = yield
    if report.failed and _CORES in item.stash:
        cores = subtract_core_times(item.stash[_CORES], read_core_times()) or ()
        share = sum(core.steal_ns for core in cores) / max(1, sum(core.busy_ns + core.idle_ns for core in cores))
        if share > _MOST_STOLEN and report.when == "call" and item.get_closest_marker("alone"):
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, f"{share:.0%} {STOLEN}")
        elif share > _MOST_STOLEN:
            report.user_properties.append((_SLOWED, f"{share:.0%}"))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the tests that were slowed, in the process that all reports come to."""
    if any(name == _SLOWED for name, _ in report.user_properties):
        _slowed.add(report.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--every` and `--share`, for further cases, and `--rescue`, for a second try of failed tests."""
    parser.addoption(
        "--every",
        action="store_true",
        help="also the other event loop, larger screens, more examples and the whole truth matrix",
    )
    parser.addoption(
        "--share",
        type=int,
        default=1,
        metavar="N",
        help="with --every: one in N of the further cases; the commit decides which",
    )
    parser.addoption(
        "--rescue",
        action="store_true",
        help=f"run what failed last time once more; more than {MOST_RESCUED} that pass now are a failure",
    )


@pytest.hookimpl(tryfirst=True)  # before the plugin of --last-failed looks
def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples are drawn, and have `--rescue` choose the tests that failed last time.

    Nothing that collecting the tests makes is garbage: searching for it takes a tenth of the time to collect them.
    """
    gc.disable()
    settings.load_profile("any machine" if _runs_everything(config) else "make test")
    if config.getoption("--rescue"):
        config.option.lf, config.option.last_failed_no_failures = True, "none"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a second try that rescues too many tests: then it is not a busy machine that made them fail.

    Those that failed while time was stolen do not count.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    cache = getattr(session.config, "cache", None)  # none with -p no:cacheprovider
    if reporter is None or cache is None:
        return
    if not session.config.getoption("--rescue"):
        cache.set(_SLOWED, sorted(_slowed))
    elif exitstatus == pytest.ExitCode.OK and len(_rescued(reporter)) > MOST_RESCUED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _rescued(reporter: Any) -> list[str]:
    """Return the tests that passed at the second try, without those that were slowed at the first."""
    slowed = set(reporter.config.cache.get(_SLOWED, ()))
    return [test for test in _passed(reporter) if test not in slowed]


def _passed(reporter: Any) -> list[str]:
    return [report.nodeid for report in reporter.stats.get("passed", ())]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the tests that a second try rescued, and those skipped for stolen time."""
    skipped = [
        report.nodeid for report in terminalreporter.stats.get("skipped", ()) if STOLEN in str(report.longrepr)
    ]
    passed = _passed(terminalreporter) if config.getoption("--rescue") else []
    rescued = _rescued(terminalreporter) if config.getoption("--rescue") else []
    slowed = [test for test in passed if test not in rescued]
    for title, tests in (
        ("rescued by a second try", rescued),
        (f"rescued by a second try; at the first, over {_MOST_STOLEN:.0%} {STOLEN}", slowed),
        ("skipped for stolen time", skipped),
    ):
        if tests:
            terminalreporter.section(f"{len(tests)} {title}")
            for test in tests:
                terminalreporter.line(test)
    if len(rescued) > MOST_RESCUED:
        terminalreporter.line(f"more than {MOST_RESCUED} tests passed at their second try only: this run fails")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the event loops that a test runs on: uvloop, and with --every asyncio's own as well.

    Textual runs on asyncio's. A test, or a module, marked with `loop("uvloop")` runs on that one only.
    """
    marker = item.get_closest_marker("loop")
    if marker is not None:
        return {name: _LOOPS[name] for name in marker.args}
    if TUI in item.path.parents:
        return {"asyncio": _LOOPS["asyncio"]}
    return _LOOPS if _runs_everything(config) else {"uvloop": _LOOPS["uvloop"]}


def _runs_everything(config: pytest.Config) -> bool:
    return config.getoption("--every") or any("::" in argument for argument in config.args)


def _is_one_more_case(item: pytest.Item) -> bool:
    """Return whether a test is a further case of one that is run anyway.

    It has a larger screen, or asyncio's own event loop where uvloop has its turn as well, or a mark that says so.
    So is what needs the files of a release: the release check builds them as well, which takes 20 s of CPU.
    """
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if parameters.get("size") in LARGER or item.get_closest_marker("every") is not None or _needs_release(item):
        return True
    is_other_loop = parameters.get("_asyncio_loop_factory") is _LOOPS["asyncio"]
    return is_other_loop and TUI not in item.path.parents and item.get_closest_marker("loop") is None


def _needs_release(item: pytest.Item) -> bool:
    return "dist" in getattr(item, "fixturenames", ())


def _commit() -> str:
    """Return the commit of these sources; nothing outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave further cases out, unless `--every` or the test's name asks for them; `--share` draws some of them."""
    has_none = not _runs_everything(config)
    share = 1 if any("::" in argument for argument in config.args) else int(config.getoption("--share"))
    seed = zlib.crc32(_commit().encode()) if share > 1 else 0

    def is_left_out(item: pytest.Item) -> bool:
        if not _is_one_more_case(item):
            return False
        mark = item.get_closest_marker("every")
        name = "release" if _needs_release(item) else item.nodeid
        name = name if mark is None else str(mark.kwargs.get("group", name))
        return has_none or zlib.crc32(name.encode(), seed) % share != 0

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        items[:] = [item for item in items if not is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Leave what importing all tests has made out of every later search for garbage: 0.14 s each time otherwise.

    With Python's own threshold of 700 objects the searches take a fifth of the CPU of a test of the app.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fail where the whole run leaves a linkgauge process or a block of shared memory behind."""
    name, _, value = _MARK.partition("=")
    os.environ[name] = value
    shared = set(Path("/dev/shm").iterdir()) if Path("/dev/shm").is_dir() else set[Path]()
    yield
    CommandProcess.end_parent()
    deadline = time.monotonic() + _PATIENCE_S
    while (left := {p: c for p, c in _marked_processes().items() if "linkgauge" in c}) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)  # a process that is on its way out may still be seen
    del os.environ[name]
    assert not left, f"processes left behind: {left}"
    if Path("/dev/shm").is_dir():
        assert not [p for p in set(Path("/dev/shm").iterdir()) - shared if "linkgauge" in p.name]


@pytest.fixture(scope="session", autouse=True)
def of_no_person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run as somebody without presets or keys of their own, in English, whoever runs the tests."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        environment.setenv("LC_ALL", "C.UTF-8")
        environment.delenv("LINKGAUGE_KEY", raising=False)
        yield


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[None]:
    """Keep the fork server for all tests of a module, which have one event loop: its start takes 0.17 s of CPU."""
    async with ForkServerLease():
        yield
