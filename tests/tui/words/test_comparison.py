"""A comparison of runs in words, and `linkgauge runs compare`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.comparison import Difference, Figure, FigureUnit, compare
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.summary import Summary
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.words.comparison import (
    changed_settings,
    difference_words,
    figure_name,
    figure_value_words,
    plan_difference_words,
)

SINGLE_SESSION = Settings()
HOST = HostInfo("a", "Linux", 2, "linkgauge 0.1.0", "uvloop")


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(5.2, 3.9, 6.4), "5.2 % faster (3.9–6.4)"),
        (Difference(-5.2, -6.4, -3.9), "5.2 % slower (3.9–6.4)"),
        (Difference(0.4, -0.3, 1.1), "no significant difference (−0.30 to +1.1 %)"),
        (Difference(12.0), "12.0 % faster (not tested)"),
        (Difference(99.0, 97.0, 101.0), "99.0 % faster (97.0–2.0x)"),
        (Difference(62_322.0, 62_000.0, 62_700.0), "624x as fast (621x–628x)"),
        (Difference(150.0), "2.5x as fast (not tested)"),
        (Difference(150.0, -20.0, 300.0), "no significant difference (−20.0 % to 4.0x)"),
        (Difference(0.0), "the same"),
        (None, "–"),
    ],
)
def test_a_difference_in_words_claims_what_its_interval_shows(difference: Difference | None, words: str) -> None:
    """And says if there is no interval."""
    figure = Figure("measured.out.mbit_s", "bit_s", 100e6, 105.2e6, difference)
    assert difference_words(figure).replace("\N{NO-BREAK SPACE}", " ") == words


def test_figures_are_named_and_valued_in_their_own_units() -> None:
    """A share of CPU differs by points, not by percent of percent."""
    cpu = Figure("cpu.near.host_percent", "percent", 50.0, 55.0, Difference(10.0))
    assert figure_name(cpu) == "CPU local host"
    assert difference_words(cpu) == "5.0 points more (not\N{NO-BREAK SPACE}tested)"  # never apart at a line's end
    latency = Figure("measured.in.latency_us.p99", "ns", 1_500.0, None)
    assert figure_name(latency) == "in p99"
    shown = [figure_value_words(latency, second=second) for second in (False, True)]
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in shown] == ["1.50 µs", "–"]


@pytest.mark.parametrize(
    ("key", "unit", "values", "texts"),
    [
        ("measured.out.packets_s", "count", (81_620.0, 900.0), ("out packets/s", "81 620", "900")),
        ("measured.in.udp.lost_percent", "loss_percent", (0.0, 0.004), ("in loss", "0 %", "0.004 %")),
        ("measured.out.udp.jitter_ms.mean", "delay_ns", (31_000.0, None), ("out jitter mean", "31.0 µs", "–")),
        (
            "measured.total.udp.delay_variation_ms.p99",
            "delay_ns",
            (1.25e6, 310_000),
            ("total delay variation p99", "1.25 ms", "310 µs"),
        ),
    ],
)
def test_figures_of_datagrams_have_names_and_units(
    key: str, unit: FigureUnit, values: tuple[float | None, float | None], texts: tuple[str, str, str]
) -> None:
    """A small loss is not rounded to nothing."""
    figure = Figure(key, unit, *values)
    shown = [figure_name(figure), *(figure_value_words(figure, second=second) for second in (False, True))]
    assert tuple(text.replace("\N{NO-BREAK SPACE}", " ") for text in shown) == texts


def test_a_loss_where_there_was_none_differs_by_points() -> None:
    """A percentage of nothing says nothing."""
    figure = Figure("measured.out.udp.lost_percent", "loss_percent", 0.0, 2.5)
    assert difference_words(figure).replace("\N{NO-BREAK SPACE}", " ") == "2.5 points more (not tested)"


@pytest.mark.parametrize(
    ("key", "unit", "words"),
    [
        ("measured.out.latency_us.p50", "ns", "3.0x as long (not tested)"),
        ("tcp.retransmits", "count", "3.0x as many (not tested)"),
        ("cpu.near.msec_per_mib", "msec", "3.0x as much (not tested)"),
    ],
)
def test_more_than_twice_as_much_is_a_factor_in_every_unit(key: str, unit: FigureUnit, words: str) -> None:
    """624x is easier to read than 62 322 %."""
    text = difference_words(Figure(key, unit, 100.0, 300.0, Difference(200.0)))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == words


def test_runs_of_any_two_plans_are_compared() -> None:
    """Whatever differs has its value in words: a workload with messages and one without, and every limit."""
    first = summary_of(Plan())
    plan = Plan(
        Settings(Direction.IN, 3, 65_536),
        Workload.RR,
        block_bytes=4_096,
        mode=Mode.SENDFILE,
        socket=SocketOptions(congestion="reno"),
        workers=2,
        near_cores=(0, 1),
        burst=4,
        bytes_limit=5 << 20,
    )
    comparison = compare(first, summary_of(plan))
    rows = plan_difference_words(comparison)
    values = {name: (before, after.replace("\N{NO-BREAK SPACE}", " ")) for name, before, after in rows}
    assert values["message sizes"] == ("none", "200/1 000")
    assert values["bytes"] == ("unlimited", "5.00 MiB")
    assert values["near cores"] == ("default", "0/1")
    assert {"local cores"} == {name for name, *_ in changed_settings(comparison) if "cores" in name}
    limited = plan_difference_words(compare(first, summary_of(Plan(rate_bit_s=100_000_000))))
    assert [(name, after.replace("\N{NO-BREAK SPACE}", " ")) for name, _, after in limited] == [
        ("rate", "100 Mb/s")
    ]


def summary_of(plan: Plan) -> Summary:
    """Return the summary of a run with a plan that measured nothing."""
    return replay([Started("2026-01-01T00:00:00Z", "db-02:5820", HOST, HOST, plan, Expectation())]).summary()


def keep(directory: Path, run_id: str, step: int, settings: Settings) -> None:
    """Keep a run of 20 intervals, each of which carries a little more or less than 1,000,000 bytes."""
    tick = SECOND_NS // 4
    events: list[Event] = [Started("2026-11-21T01:15:30Z", "db-02:5820", HOST, HOST, Plan(settings), Expectation())]
    for index in range(20):
        session = SessionSample(Direction.OUT, 1, 1_000_000 + step + 1_000 * (index * 7 % 5))
        sample = Sample(End.FAR, index, (index + 1) * tick, tick, (session,))
        events.append(Sampled(sample, settings, warmup=False))
    events.append(Ended(RunEnd(Reason.COMPLETED, "its duration is up")))
    with RunLog.open(directory) as log:
        log.begin(run_id, "", "db-02")
        for event in events:
            log.append_event(run_id, event)


@pytest.fixture
def store_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that stores a run in a run log of this test."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    return lambda run_id, step, settings=SINGLE_SESSION: keep(tmp_path, run_id, step, settings)


def test_saved_runs_are_compared_with_the_first(
    store_run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A tenth faster is shown with its interval, what is alike is not called a difference."""
    store_run("first", 0)
    store_run("second", 100_000, Settings(window_bytes=65_536))
    store_run("third", 0)
    assert run_command_line(["runs", "compare", "first", "second", "third"]) == 0
    text = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    assert "% faster (" in text
    assert "64K" in text
    assert "no significant difference" in " ".join(text.split())
    assert run_command_line(["runs", "compare", "first", "second", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (comparison_json,) = document["comparisons"]
    assert (comparison_json["against"], comparison_json["run_id"]) == ("first", "second")
    assert comparison_json["changed"] == {"window": {"first": "auto", "second": "64K"}}
    (rate,) = [figure for figure in comparison_json["figures"] if figure["key"] == "measured.out.mbit_s"]
    low, high = rate["ci95_percent"]
    assert rate["is_shown"]
    assert 9 < low < rate["difference_percent"] < high < 11


def test_a_run_is_not_compared_with_itself(
    store_run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two beginnings of one id are two names of one run."""
    store_run("first", 0)
    assert run_command_line(["runs", "compare", "first", "fir"]) == 2
    assert "first fir names a run twice; give different runs" in capsys.readouterr().err


def test_a_single_run_is_not_compared(store_run: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    """The command line is wrong, and says what is missing."""
    store_run("first", 0)
    assert run_command_line(["runs", "compare", "first"]) == 2
    assert "two runs" in capsys.readouterr().err
    assert run_command_line(["runs", "compare", "first", "nobody"]) == 2
