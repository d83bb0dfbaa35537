"""Texts of wrong command lines: the option as typed, what is wrong, what would be right; no library's own words."""

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import MAX_DURATION_NS
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.cli.plan_options import DirectionOptions, PlanOptions
from linkgauge.tui.cli.usage_errors import join_choices, nearest_command

LIBRARY_WORDS = (
    "Value error",
    "Input should",
    "valid integer",
    "None",
    "True",
    "Errno",
    "Traceback",
    "(s)",
    "Enum",
)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "loopback", "--direction", "both"], "--direction 'both' is invalid; give out, in or duplex"),
        (
            ["run", "loopback", "--mode", "fast"],
            "--mode 'fast' is invalid; give copy, sendfile, discard, rate or quality",
        ),
        (["run", "loopback", "--workload", "x"], "--workload 'x' is invalid; give stream, rr, crr, fetch or udp"),
        (["runs", "list", "--verdict", "no"], "--verdict 'no' is invalid; give pass, short, fail or none"),
        (["lab", "gbe-fd-1500", "--slow", "x"], "--slow 'x' is invalid; give a number"),
        (["lab", "gbe-fd-1500", "--delay", "20%"], "--delay '20%' is invalid; give a number"),
        (["lab", "gbe-fd-1500", "--seed", "1.5"], "--seed '1.5' is invalid; give a whole number"),
        (["run", "loopback", "-t", "0.1"], "--seconds 0.1 is invalid; give 0.5 to 86400 seconds"),
        (["run", "loopback", "-P", "0"], "--sessions 0 is invalid; give 1 to 128"),
        (["run", "loopback", "-w", "x"], "--window 'x' is invalid; give auto"),
        (["run", "loopback", "-b", "1000"], "--rate '1000' is invalid; give bits a second with a unit"),
        (
            ["run", "loopback", "--workload", "udp", "--loss-goal", "200"],
            "--loss-goal '200' is invalid; give 0 to 100",
        ),
        (["run", "loopback", "--loss-goal", "1"], "--loss-goal is for datagrams; give --workload udp"),
        (["respond"], "PEER is missing; give a host: linkgauge respond HOST, or loopback"),
        (
            ["respond", "iperf3://db-02"],
            "latency under load cannot be had of iperf3://db-02:5201",
        ),
        (
            ["respond", "ssh://db-02", "--via-ssh"],
            "latency under load with --via-ssh would measure ssh's own queue",
        ),
        (["check", "ssh://db-02", "--via-ssh", "--grade", "B"], "--grade with --via-ssh would measure ssh's own"),
        (["respond", "loopback", "--max-rise", "soon"], "--max-rise 'soon' is invalid; give milliseconds"),
        (["respond", "loopback", "--max-rise", "0"], "--max-rise '0' is invalid; give milliseconds"),
        (["respond", "loopback", "--grade", "F"], "--grade 'F' is invalid; give one of A+, A, B, C, D"),
        (["respond", "loopback", "--direction", "up"], "--direction 'up' is invalid; give out, in or duplex"),
        (["respond", "loopback", "--sessions", "129"], "--sessions 129 is invalid; give 1 to 128"),
        (
            ["check", "loopback", "--max-rise", "30ms", "--workload", "udp"],
            "--max-rise is for TCP streams; leave it out, or --workload udp",
        ),
        (["run", "loopback", "--grade", "B", "--workload", "rr"], "--grade is for TCP streams; leave it out"),
        (["check", "loopback", "--max-jitter", "1"], "--max-jitter is for steps of a rate; give --workload udp"),
        (
            ["check", "loopback", "--workload", "udp", "--max-jitter", "soon"],
            "--max-jitter 'soon' is invalid; give milliseconds",
        ),
        (
            ["check", "loopback", "--workload", "udp", "--max-jitter", "0"],
            "--max-jitter 0 ms is invalid; give more than 0 and at most 10000 ms",
        ),
        (["check", "loopback", "--workload", "udp", "-t", "none"], "--seconds none has no next step"),
        (["check", "loopback", "--workload", "udp", "--until-ci", "1"], "--until-ci does not go with steps"),
        (["check", "loopback", "--workload", "udp", "--confirm"], "--confirm does not go with steps"),
        (["run", "loopback", "--seconds", "none", "--confirm"], "--confirm needs a test that ends by itself"),
        (["run", "loopback", "-n", "x"], "--bytes 'x' is invalid; give a number of bytes"),
        (
            ["run", "loopback", "-t", "soon"],
            "--seconds 'soon' is invalid; give seconds such as 10, 1.5 or 2m, or none",
        ),
        (["run", "loopback", "-P", "1.5"], "--sessions '1.5' is invalid; give 1 to 128"),
        (
            ["run", "loopback", "-t", "5", "-i", "5"],
            "--interval 5 is invalid; a test of 5 s with a warm-up of 1 s would measure nothing: give at most 4,",
        ),
        (["check", "loopback", "-t", "1", "-i", "1"], "--interval 1 is invalid; a test of 1 s"),
        (["run", "loopback", "-t", "10", "--warmup", "9", "-i", "5"], "--interval 5 is invalid; a test of 10 s"),
        (
            ["run", "loopback", "--until-ci", "1%", "--max-seconds", "0"],
            "--max-seconds 0 is invalid; give 0.5 to 86400",
        ),
        (
            ["run", "loopback", "--until-ci", "1%", "--max-seconds", "x"],
            "--max-seconds 'x' is invalid; give seconds",
        ),
        (["run", "loopback", "--csv", "/dev/full"], "--csv /dev/full: no space left on device; give another file"),
        (
            ["run", "loopback", "--csv", "/no/x.csv"],
            "--csv /no/x.csv: its directory does not exist; make it",
        ),
        (
            ["run", "loopback", "--csv", "-"],
            "--csv -: it would become a file of this name; give a file, or /dev/stdout",
        ),
        (
            ["sweep", "loopback", "--csv", "-"],
            "--csv -: it would become a file of this name; give a file, or /dev/stdout",
        ),
        (["run", "loopback", "--cport", "0"], "--cport 0 is invalid; give 1 to"),
        (["run", "loopback", "--warmup", "20"], "--warmup 20 is invalid"),
        (["run", "loopback", "--block", "1"], "--block 1 is invalid"),
        (["run", "ssh://host", "--data-port", "0"], "--data-port 0 is invalid; give a number from 1 to 65535"),
        (["run", "loopback", "--via-ssh"], "--via-ssh needs a peer by ssh, such as ssh://loopback"),
        (["run", "loopback:99999"], "PEER: port 99999 is invalid; give a number from 1 to 65535"),
        (["run", ""], "PEER '' is invalid; give HOST"),
        (["run"], "PEER is missing; give a host: linkgauge run HOST, or loopback"),
        (
            ["watch", "gbe-fd-1500"],
            "PEER is missing; give a host: linkgauge watch gbe-fd-1500 HOST; a host that is named so is written",
        ),
        (["run", "10mb-fd", "100mb-fd"], "10mb-fd and 100mb-fd are presets, and the host is missing; a host"),
        (["check", "10mb-fd", "db-02", "--preset", "auto"], "PRESET 10mb-fd and --preset auto contradict each"),
        (["check", "db-02", "gbe-fd-150"], "preset 'gbe-fd-150' is not known; did you mean gbe-fd-1500"),
        (["runs", "show"], "ID is missing; linkgauge runs lists them"),
        (["presets", "show"], "ID is missing; linkgauge presets lists them"),
        (["lab"], "PRESET|clean is missing; linkgauge presets lists them"),
        (["run", "loopback", "--sesions", "4"], "there is no option --sesions; did you mean --sessions?"),
        (["run", "loopback", "--sessions"], "--sessions needs a value"),
        (["run", "10mb-fd", "loopback", "more", "words"], "unexpected argument: more words"),
        (
            ["run", "loopback", "-R", "--direction", "out"],
            "--direction out and -R (--reverse) contradict",
        ),
        (["run", "loopback", "-R", "--bidir"], "-R (--reverse) and --bidir contradict each other"),
        (["loopback", "--nonsense"], "there is no option --nonsense\n"),
        (["-c", "db-02"], "there is no option -c; give the host alone: linkgauge run HOST"),
        (["-s"], "there is no option -s; start the remote end with linkgauge endpoint"),
        (["run", "loopback", "-p", "5201"], "there is no option -p; write the port behind the host: HOST:PORT"),
        (["endpoint", "-p", "5201"], "there is no option -p; iperf3's -p is --port here"),
        (["run", "loopback", "-O", "2"], "there is no option -O; iperf3's -O is --warmup here"),
        (["run", "loopback", "-l128K"], "there is no option -l; iperf3's -l is --block here"),
        (["check", "loopback", "-C", "bbr"], "there is no option -C; iperf3's -C is --congestion here"),
        (
            ["run", "loopback", "--set-mss", "1400"],
            "there is no option --set-mss; iperf3's --set-mss is --mss here",
        ),
        (["run", "loopback", "-Z"], "there is no option -Z; iperf3's -Z is --mode sendfile here"),
        (["run", "loopback", "-6"], "IP version 6 is invalid; loopback is an IPv4 address: leave out -6"),
        (["run", "loopback", "-u"], "there is no option -u; iperf3's -u is --workload udp here"),
        (["runs", "list", "-c"], "there is no option -c\n"),
        (["help", "chekc"], "there is no command 'chekc'; did you mean linkgauge check?"),
        (["endpoint", "--port", "99999"], "--port 99999 is invalid; give a number"),
        (["endpoint", "--open", "--key-file", "x"], "--key-file and --open exclude each other"),
    ],
)
def test_an_error_names_the_option_as_typed_and_what_would_be_right(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no text of Click or Python; the exit status is 2."""
    assert run_command_line(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"linkgauge: {text}")
    assert not [word for word in LIBRARY_WORDS if word in printed.err]


@pytest.mark.parametrize(
    "options",
    [
        PlanOptions(seconds="10", interval="1"),
        PlanOptions(seconds="1", interval="0.8"),
        PlanOptions(seconds="5", interval="5", warmup="0"),
        PlanOptions(seconds="none", interval="10"),
        PlanOptions(bytes_="1M", interval="10"),
    ],
)
def test_an_interval_that_leaves_a_sample_after_the_warm_up_is_accepted(options: PlanOptions) -> None:
    """The first interval that begins after the warm-up begins before the end."""
    plan = options.to_plan()
    assert plan.effective_warmup_ns < (plan.duration_ns or MAX_DURATION_NS)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            "run HOST --workload udp --block 8K",
            "--block 8K with udp is invalid; give the size of each datagram",
        ),
        ("check HOST --workload udp --block 1M", "--block 1M with udp is invalid; give the size of each datagram"),
        ("run HOST --workload udp --nodelay", "--nodelay with udp is invalid; only TCP connections have it"),
        (
            "run HOST --workload rr --mode sendfile",
            "--mode sendfile with rr is invalid; its messages are",
        ),
        (
            "run HOST --workload crr --mode copy",
            "--mode copy with crr is invalid; its messages",
        ),
        (
            "run HOST --workload udp --loss-goal 1%",
            "--loss-goal is for the steps of check and for a search",
        ),
        (
            "check HOST --workload udp --rate max --loss-goal 1%",
            "--loss-goal is for the steps of check and for a",
        ),
    ],
)
def test_an_option_that_the_workload_would_ignore_is_refused(
    capsys: pytest.CaptureFixture[str], command: str, text: str
) -> None:
    """The user would take the result for a measurement with it."""
    assert run_command_line(command.split()) == 2
    assert capsys.readouterr().err.startswith(f"linkgauge: {text}")


def test_directions_that_agree_are_accepted() -> None:
    """-R and --direction in say the same."""
    assert DirectionOptions(direction=Direction.IN, reverse=True).find() is Direction.IN
    assert DirectionOptions(bidir=True).find() is Direction.DUPLEX
    assert DirectionOptions().find() is Direction.OUT


def test_choices_are_joined_and_a_mistyped_command_is_recognised() -> None:
    """A host name that is like no command is none."""
    assert join_choices(["a"]) == "a"
    assert join_choices(["a", "b", "c"]) == "a, b or c"
    commands = ["app", "check", "run", "runs", "presets", "endpoint"]
    assert nearest_command("chekc", commands) == "check"
    assert nearest_command("preset", commands) == "presets"
    assert nearest_command("db-02.example.com", commands) is None
