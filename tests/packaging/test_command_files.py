"""Manual pages and completions: up to date, readable by man, and answered by real shells."""

import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import DEADLINE_S, ROOT

pytestmark = pytest.mark.timeout(200)  # an installation beside five other tests took over a minute
PAGES = sorted((ROOT / "packaging" / "man").glob("*.1"))
COMPLETE = "linkgauge chec\t--hel\t\n"


def test_pages_and_completions_are_those_of_the_command_line() -> None:
    """`make command-files` brings them up to date."""
    command = [sys.executable, ROOT / "packaging" / "command_files.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is needed (Debian: groff-base)")
def test_pages_are_formatted_without_a_warning() -> None:
    """Nothing of a help text is taken for a command of the formatter."""
    command = ["/usr/bin/env", "groff", "-man", "-Kutf8", "-Tutf8", "-ww", *map(str, PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert done.stderr == ""
    assert done.stdout.count("User commands") >= len(PAGES)


@pytest.mark.every
@pytest.mark.skipif(shutil.which("man") is None, reason="man is needed (Debian: man-db)")
def test_man_finds_the_installed_pages(installed: Any, tmp_path: Path) -> None:
    """By the name of a command."""
    environment = {**installed.environment(tmp_path), "MANPATH": str(installed.prefix / "share" / "man")}
    command = ["/usr/bin/env", "man", "-P", "cat", "linkgauge-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=DEADLINE_S)
    assert "linkgauge check [options] [PRESET] PEER" in " ".join(done.stdout.split())


def start_of(shell: str, share: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command of an interactive shell that has the installed completion, and its variables."""
    if shell == "bash":
        rc = home / "bashrc"
        rc.write_text(f"source {share}/bash-completion/completions/linkgauge\nPS1='ready> '\n")
        return ["bash", "--noprofile", "--rcfile", str(rc), "-i"], {}
    if shell == "zsh":
        functions = share / "zsh" / "site-functions"
        lines = [
            f"fpath=({functions} $fpath)",
            "autoload -Uz compinit",
            f"compinit -u -d {home}/dump",
            "PS1='ready> '",
        ]
        (home / ".zshrc").write_text("\n".join([*lines, ""]))
        return ["zsh", "-d", "-i"], {"ZDOTDIR": str(home)}
    prompt = "function fish_prompt; echo -n 'ready> '; end; function fish_greeting; end"
    return ["fish", "-i", "-C", prompt], {"XDG_DATA_DIRS": f"{share}:/usr/share"}


@pytest.mark.every
@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(other, marks=pytest.mark.every) for other in ("zsh", "fish"))]
)
def test_a_shell_completes_a_command_and_an_option(installed: Any, tmp_path: Path, shell: str) -> None:
    """Typed on a terminal: two tabs make `linkgauge check --help` of it, and return carries it out."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is needed")
    command, variables = start_of(shell, installed.prefix / "share", tmp_path)
    environment = {**installed.environment(tmp_path), **variables, "TERM": "vt100"}
    ours, theirs = os.openpty()
    # A session of its own, whose terminal is the pseudo-terminal: what a shell needs to be interactive.
    starter = "import fcntl,os,sys,termios;fcntl.ioctl(0,termios.TIOCSCTTY,0);os.execvp(sys.argv[1],sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-ISc", starter, *command],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        try:
            read_until(ours, "ready> ")
            os.write(ours, COMPLETE.encode())
            assert "linkgauge check [OPTIONS]" in read_until(ours, "linkgauge check [OPTIONS]")
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal: int, words: str) -> str:
    """Return what a terminal shows, up to these words."""
    shown, deadline = "", time.monotonic() + DEADLINE_S
    while words not in " ".join(shown.split(" ")):
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"waited in vain for {words!r} in\n{shown}"
        shown += os.read(terminal, 65_536).decode(errors="replace")
    return shown
