"""The command line without a network: what it loads, what it prints, what it refuses."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from linkgauge.tui.cli.main import run_command_line

DEADLINE_S = 30.0

Cli = Callable[..., subprocess.CompletedProcess[str]]

PRESETS = [
    "10mb-hd", "10mb-fd", "100mb-hd", "100mb-fd", "gbe-fd-1500", "gbe-fd-9000", "10gbe-fd-1500",
    "10gbe-fd-9000", "fddi-4352", "atm155-1500", "atm155-9180", "atm622-1500", "atm622-9180", "loopback",
]  # fmt: skip


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Carry a command out, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, "PYTHONWARNINGS": "error", **environment},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after some code, whatever status it exits with."""
    script = f"""
import sys
try:
    exec({code!r})
except SystemExit:
    pass
print("LOADED", *sorted(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return set(done.stdout.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize("arguments", [["check", "--help"], ["presets", "list"]])
def test_a_command_that_opens_no_app_does_not_load_the_libraries_of_the_app(arguments: list[str]) -> None:
    """Help is quick because it loads neither Textual nor the live line, the plot or the event loop."""
    loaded = loaded_by(f"import sys; sys.argv[1:] = {arguments!r}; from linkgauge.__main__ import main; main()")
    assert "linkgauge.tui.cli.main" in loaded
    assert not loaded & {"textual", "rich.live", "uvloop", "asyncio", "sqlite3"}


def test_a_worker_process_loads_nothing_that_only_people_need() -> None:
    """Sessions live in workers; a worker is small and starts at once."""
    loaded = loaded_by("import linkgauge.engine.workers.fork_server")
    assert "linkgauge.engine.workers.worker" in loaded
    assert not loaded & {"textual", "rich", "click", "platformdirs", "linkgauge.tui"}


@pytest.mark.parametrize("arguments", [(), ("db-02",)])
def test_a_terminal_that_cannot_show_the_app_gets_the_command_that_needs_no_screen(
    arguments: tuple[str, ...],
) -> None:
    """As in the shell of an editor; a test is not begun in place of the app."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "linkgauge", *arguments]
    environment = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as done:
        status = done.wait(DEADLINE_S)
    text = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)
    assert status == 2
    assert f"TERM=dumb) cannot show the app; without it: linkgauge run {''.join(arguments) or 'loopback'}" in text


def test_the_help_names_every_command_and_what_a_peer_is() -> None:
    """And the exit statuses, which scripts live on."""
    done = process("--help")
    assert done.returncode == 0
    for word in ("check", "run", "endpoint", "presets", "runs", "[PEER", "loopback", "Exit status"):
        assert word in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "usage", "words"),
    [
        (("presets", "list"), "[WORD ...]", "Show only presets with these words"),
        (("presets", "new"), "NAME", "Id of the run or its beginning, or last; required."),
        (("runs", "report"), "ID...", "File of the page; required."),
        (("runs", "compare"), "ID ID...", "the others are compared with the first."),
        (("run",), "[PRESET] PEER", "Measure latency before and under the load too."),
    ],
)
def test_a_help_page_says_what_may_be_left_out_and_what_may_not(
    cli: Cli, command: tuple[str, ...], usage: str, words: str
) -> None:
    """A stranger has nothing else to go by."""
    text = cli(*command, "--help").stdout
    assert text.splitlines()[0] == f"Usage: linkgauge {' '.join(command)} [OPTIONS] {usage}"
    assert words in " ".join(text.split())


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    """Data, so on stdout."""
    import linkgauge

    assert cli("--version").stdout == f"linkgauge {linkgauge.__version__}\n"


@pytest.mark.parametrize("arguments", [["presets"], ["presets", "list"]])
def test_presets_without_a_subcommand_lists_them(cli: Cli, arguments: list[str]) -> None:
    """Every preset has a line that begins with its id."""
    done = cli(*arguments)
    assert done.returncode == 0
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line[:1] not in {"", " "}]
    assert set(PRESETS) <= set(first_words)


@pytest.mark.parametrize("arguments", [["presets", "--json"], ["presets", "list", "--json"]])
def test_presets_list_as_json_has_every_fact(cli: Cli, arguments: list[str]) -> None:
    """For programs: one list, each preset with its id, its link and its document's numbers."""
    presets = json.loads(cli(*arguments).stdout)
    by_id = {preset["id"]: preset for preset in presets}
    assert set(PRESETS) <= set(by_id)
    assert {"source", "table", "row", "column", "value"} <= set(by_id["gbe-fd-1500"]["facts"][0])


def test_presets_show_tells_the_link_the_expectations_and_the_documents_own_numbers(cli: Cli) -> None:
    """Slips of the document included, and marked as such."""
    done = cli("presets", "show", "gbe-fd-1500")
    assert done.returncode == 0
    for words in ("1 Gb Ethernet, full duplex, MTU 1500", "948", "AIX table 1", "1\N{NO-BREAK SPACE}667", "error"):
        assert words in done.stdout


def test_presets_show_as_json_is_a_single_preset(cli: Cli) -> None:
    """The same that the list has."""
    assert json.loads(cli("presets", "show", "loopback", "--json").stdout)["id"] == "loopback"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["presets", "show", "gbe-fd-150"], "gbe-fd-1500"),
        (["check", "auto", "loopback", "--line-rate", "fast"], "2.5G"),
        (["run", "loopback", "--line-rate", "2.5G"], "--preset auto"),
        (["check", "lpar-1500", "loopback", "--line-rate", "2.5G"], "does not come from a line rate"),
        (["check", "gbe-fd-1500"], "PEER"),
        (["check", "gbe-fd-1500", "loopback", "--sessions", "-5"], "1 to 128"),
        (["run", "loopback", "--window", "-1"], "window"),
        (["run", "loopback", "--window", "2G"], "2K to 1G"),
        (["run", "loopback", "--window", "9" * 400], "window"),
        (["run", "loopback", "--seconds", "nan"], "--seconds"),
        (["run", "loopback", "--seconds", "1e400"], "--seconds"),
        (["run", "loopback", "--seconds", "99999999"], "86400"),
        (["run", "loopback", "--interval", "0"], "interval"),
        (["run", "loopback", "--until-ci", "0"], "percents of the mean"),
        (["run", "loopback", "--until-ci", "1%", "--seconds", "5"], "--max-seconds"),
        (["run", "loopback", "--max-seconds", "5"], "--until-ci"),
        (["run", "loopback", "--pass-mark", "101"], "--pass-mark"),
        (["endpoint", "--ui"], "--ui needs a terminal"),
        (["endpoint", "--ui", "--log-json"], "neither --json nor --log-json nor --log-file"),
        (["run", "loopback", "--congestion", "a b"], "congestion"),
        (["run", "loopback", "--preset", "nope"], "presets list"),
        (["run", "localhost:0"], "1 to 65535"),
        (["run", "localhost:http"], "1 to 65535"),
        (["run", "ssh://-oProxyCommand=x"], "ssh://[user@]host[:port]"),
        (["ssh://db-02"], "needs a terminal"),
        (["run", "http://db-02/"], "HOST"),
        (["loopback", "--dscp", "64"], "0 to 63"),
        (["loopback", "--workload", "rr", "--probe"], "only a stream has a probe"),
        (["endpoint", "--port", "-1"], "65535"),
        (["runs", "show", "nope"], "runs list"),
        (["runs", "export", "nope"], "runs list"),
        (["runs", "delete", "nope"], "runs list"),
        (["runs", "export", "all", "--json", "--csv", "x.csv"], "one of them"),
        (["presets", "list", "too", "many"], "too many"),
    ],
)
def test_a_wrong_command_line_exits_2_and_names_the_choices(
    cli: Cli, arguments: list[str], problem: str, tmp_path: Path
) -> None:
    """On stderr, in a line or two; nothing on stdout, and nothing is made anywhere."""
    data_dir = tmp_path / "data"
    done = cli(*arguments, LINKGAUGE_DATA_DIR=str(data_dir))
    assert done.returncode == 2, done
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == ""
    assert not data_dir.exists()


def test_an_endpoint_that_cannot_listen_exits_3_and_says_why() -> None:
    """An address that is not this host's."""
    done = process("endpoint", "--bind", "192.0.2.1")
    assert done.returncode == 3
    assert "192.0.2.1" in done.stderr


def test_control_characters_of_an_argument_do_not_reach_the_terminal(cli: Cli) -> None:
    """What is wrong is quoted, never passed on as it is."""
    done = cli("run", "loopback", "--window", "\x1b[2J")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("arguments", [["presets", "list"], ["runs"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    """`linkgauge presets list | head -0` is quiet."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path)},
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert done.stderr in {"", "linkgauge: no saved runs yet\n"}


def test_a_terminal_without_unicode_gets_question_marks_and_no_traceback() -> None:
    """The text of a sheet has dashes and arrows in it."""
    done = process("presets", "show", "gbe-fd-1500", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_closed_standard_streams_are_no_reason_to_fail() -> None:
    """A daemon's child may have been started without them."""
    command = f"exec {sys.executable} -m linkgauge presets list <&- >&- 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], timeout=DEADLINE_S, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_verbose_stands_before_a_command_and_before_a_peer(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default command is still the app, and a log that is chosen by the variable stays chosen."""
    configured: list[str] = []
    monkeypatch.setattr(
        "linkgauge.tui.cli.main.configure_debug_log", lambda: configured.append(os.environ["LINKGAUGE_LOG"])
    )
    monkeypatch.setenv("LINKGAUGE_LOG", "")
    monkeypatch.delenv("LINKGAUGE_LOG")
    assert run_command_line([flag, "presets", "list"]) == 0
    assert run_command_line([flag, "db-02"]) == 2
    assert "the app needs a terminal" in capsys.readouterr().err
    monkeypatch.setenv("LINKGAUGE_LOG", "/tmp/log")
    assert run_command_line([flag, "presets", "list"]) == 0
    assert configured == ["debug", "debug", "/tmp/log"]


@pytest.mark.parametrize("is_ignored", [False, True], ids=["in the foreground", "ignored, as after nohup"])
def test_ctrl_c_while_the_command_line_is_loaded_prints_no_traceback(is_ignored: bool) -> None:
    """It comes in the middle of an import, and ends the process as a signal does, or does nothing if ignored."""
    script = f"""
import os, signal, sys
class CtrlC:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
if {is_ignored}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, CtrlC())
sys.argv[1:] = ["--version"]
from linkgauge.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0 if is_ignored else -signal.SIGINT, "")


@pytest.mark.every
def test_a_log_that_cannot_be_written_is_reported_and_stops_no_command(tmp_path: Path) -> None:
    """A test with it prints its result, in every process, and no traceback."""
    log = tmp_path / "missing" / "log"
    data = str(tmp_path / "data")
    done = process("run", "loopback", "-t", "0.5", LINKGAUGE_LOG=str(log), LINKGAUGE_DATA_DIR=data)
    assert done.returncode == 0, done.stderr
    assert f"linkgauge: no log: cannot write to {log}: no such file or directory\n" in done.stderr
    assert "completed" in done.stdout
