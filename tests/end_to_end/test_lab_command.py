"""`linkgauge lab` as a person runs it: the app, a check or a shell on a link that is there as long as they are."""

import json
import os
import select
import signal
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link

from ..command_process import COMMAND, CommandProcess

DEADLINE_S = 30.0
EXACT_MBIT_S = 100 * 1448 / 1538


@pytest.fixture(scope="module")
def _labs_are_possible() -> None:
    """Skip, and say why, where this machine cannot have labs."""
    try:
        with open_lab(plan_lab_link(load_catalog().find("100mb-fd"))):
            pass
    except LabUnavailable as error:
        pytest.skip(str(error))


needs_labs = pytest.mark.usefixtures("_labs_are_possible")


class Screen:
    """A terminal in memory with a command in it."""

    def __init__(self, linkgauge: Any, *arguments: str) -> None:
        self._screen = pyte.Screen(120, 40)
        self._stream = pyte.ByteStream(self._screen)
        self._fd, inside = os.openpty()
        self.modes = termios.tcgetattr(self._fd)
        termios.tcsetwinsize(self._fd, (40, 120))
        settings = {**linkgauge.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
        self.process = CommandProcess(
            [*COMMAND, *arguments], stdin=inside, stdout=inside, stderr=inside, env=settings,
            start_new_session=True, is_login=True,
        )  # fmt: skip
        os.close(inside)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def see(self, *words: str) -> None:
        """Follow the screen until all these words are on it."""
        deadline = time.monotonic() + DEADLINE_S
        while not all(
            word in (text := "\n".join(line.rstrip() for line in self._screen.display)) for word in words
        ):
            assert self._feed(deadline), f"waited in vain for {words} on\n{text}"

    def finish(self) -> int:
        """Follow the screen to the command's end; return its exit status."""
        deadline = time.monotonic() + DEADLINE_S
        while self._feed(deadline):
            pass
        return self.process.wait(DEADLINE_S)

    def is_restored(self) -> bool:
        """Tell whether the terminal's modes are what they were."""
        return termios.tcgetattr(self._fd) == self.modes

    def hang_up(self) -> int:
        """Close the terminal, as a lost SSH connection does; return the command's exit status."""
        os.close(self._fd)
        self._fd = -1
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        """End and reap the command, if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
        if self._fd >= 0:
            os.close(self._fd)
        self.process.wait(DEADLINE_S)

    def _feed(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        try:
            part = os.read(self._fd, 65_536) if ready else b""
        except OSError:  # nobody is left inside
            return False
        self._stream.feed(part)
        return bool(part)


@pytest.fixture
def screen(linkgauge: Any) -> Iterator[Callable[..., Screen]]:
    """Give a function that runs a command in a terminal of its own."""
    opened: list[Screen] = []

    def start(*arguments: str) -> Screen:
        opened.append(Screen(linkgauge, *arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def last_rate(linkgauge: Any) -> float:
    """Return the rate of the newest run in the log, in Mb/s."""
    return linkgauge("runs", "list", "--json").document[0]["document"]["measured"]["out"]["mbit_s"]


@needs_labs
@pytest.mark.every
@pytest.mark.alone
def test_the_app_in_a_lab_measures_what_the_wire_carries_while_it_draws(
    linkgauge: Any, screen: Callable[..., Screen]
) -> None:
    """The rate does not depend on who looked. A busy machine may hold the line itself back: then once more."""
    app = screen("lab", "100mb-fd")
    app.see("READY", "100 Mb Ethernet, full duplex")
    for _ in range(3):
        app.type(" ")
        app.see("RUNNING 00:04")
        app.type(" ")
        app.see("mean ±")
        if (rate := last_rate(linkgauge)) == pytest.approx(EXACT_MBIT_S, rel=0.003):
            break
    app.see("NO VERDICT", "stopped after", "Ran at the expected rate")
    app.type("q")
    assert app.finish() == 0
    assert app.is_restored()
    assert rate == pytest.approx(EXACT_MBIT_S, rel=0.003)


@pytest.mark.every
@needs_labs
def test_a_terminal_that_goes_away_takes_the_lab_and_its_app_with_it(screen: Callable[..., Screen]) -> None:
    """The kernel tells only the first process of the terminal's session: the lab, which tells the app."""
    app = screen("lab", "100mb-fd")
    app.see("READY", "100 Mb Ethernet, full duplex")
    assert app.hang_up() == 128 + signal.SIGHUP


@pytest.mark.every
@needs_labs
def test_a_shell_in_a_lab_has_the_terminal_and_knows_the_far_end(screen: Callable[..., Screen]) -> None:
    """Its keys, its job control, its exit status."""
    shell = screen("lab", "100mb-fd", "--shell")
    shell.see("the lab's link: 100 Mb/s, MTU 1500")
    shell.type("echo far end: ${LINKGAUGE_PEER%:*}; tty > /dev/null && echo on a ${TERM%%-*}\n")
    shell.see("far end: 198.18.0.2", "on a xterm")
    shell.type("echo wait $((40 + 1)); sleep 600\n")
    shell.see("wait 41")
    shell.type("\x03")  # Ctrl-C ends what runs in the shell, and nothing else
    shell.see("^C")
    shell.type("echo still $((40 + 2))\n")
    shell.see("still 42")
    shell.type("exit 7\n")
    assert shell.finish() == 7
    assert shell.is_restored()


@pytest.mark.every
@needs_labs
def test_a_command_can_stand_in_for_the_shell(linkgauge: Any) -> None:
    """For scripts: what follows -- is run at the near end."""
    answer = linkgauge("lab", "atm155-9180", "--shell", "--", "sh", "-c", "ip -brief link show near0; exit 4")
    assert answer.status == 4
    assert answer.out.startswith("near0")
    assert "149.76 Mb/s, MTU 9180" in answer.err


@pytest.mark.every
@needs_labs
def test_a_check_takes_its_own_options_after_two_dashes(linkgauge: Any) -> None:
    """And prints its document, and nothing else, on stdout."""
    answer = linkgauge("lab", "10mb-fd", "--check", "--json", "--", "--direction", "in", "--seconds", "1")
    assert answer.document["plan"]["direction"] == "in"
    assert answer.status == {"pass": 0, "short": 1, "fail": 1}[answer.document["verdict"]]
    assert not [text for text in answer.document["warnings"] if text.startswith("offloads")]


@pytest.mark.every
@needs_labs
def test_a_terminated_lab_lets_its_check_end_in_order(linkgauge: Any, tmp_path: Path) -> None:
    """The signal is passed on; what was measured until then is told."""
    rows = tmp_path / "rows.csv"
    os.mkfifo(rows)
    process = linkgauge.start(
        *("lab", "100mb-fd", "--check", "--json", "--", "--csv", rows, "--seconds", "60", "--warmup", "0")
    )
    with rows.open(encoding="utf-8") as stream:
        assert [stream.readline() for _ in range(3)][2]
        process.send_signal(signal.SIGTERM)
        assert stream.read() is not None  # up to its end: the check has closed it
    answer = linkgauge.finish(process)
    assert answer.status == 128 + signal.SIGTERM
    assert answer.document["ended"] == {"reason": "interrupted", "detail": "interrupted by SIGTERM"}
    assert answer.document["measured"]["out"]["bytes"] > 0


def _every(arguments: list[str], text: str) -> Any:
    return pytest.param(arguments, text, marks=pytest.mark.every)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["100mb-fd", "--check", "--shell"], "--check and --shell exclude each other"),
        (["100mb-fd"], "the app needs a terminal; without one: linkgauge lab 100mb-fd --check"),
        _every(["100mb-fd", "--shell", "--json"], "--json needs --check"),
        _every(["100mb-df", "--check"], "did you mean 100mb-"),
        _every(["loopback", "--check"], "a lab builds presets with a line rate"),
        (["gbe-fd-1500", "--check", "--delay", "5ms"], "choose a slower preset"),
        _every(["100mb-fd", "--check", "--slow", "100"], "give 0 to less than 100"),
        _every(["100mb-fd", "--check", "--loss", "-1%"], "give 0 to 100"),
        _every(["100mb-fd", "--check", "--wrong-mtu", "9"], "give 576 to 65\u00a0535"),
    ],
)
def test_an_impossible_link_is_refused_before_anything_is_built(
    linkgauge: Any, arguments: list[str], text: str
) -> None:
    """With the exit status of a wrong command line."""
    answer = linkgauge("lab", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert text in answer.err


def test_clean_says_that_nothing_was_left(linkgauge: Any) -> None:
    """As it is after every lab that was not torn apart."""
    answer = linkgauge("lab", "clean", "--json")
    assert answer.status == 0
    assert json.loads(answer.out) == {"ended_processes": []}
