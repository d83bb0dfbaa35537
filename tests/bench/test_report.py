"""The report: what a reader sees first, and that every row says what it must."""

import csv
from pathlib import Path

import pytest
from measurements import EntryResult, Round
from report import draw, rate_text, report_text, summary_text, write_csv

from .example_results import case, entry, results

STREAM = case(
    "best",
    entry("linkgauge run", "ours", [40e9, 42e9, 41e9]),
    entry("iperf3 -Z -l 1M", "peer", [50e9, 50e9, 50e9], at_least=1.0, cpu_at_most=1.0),
    entry("iperf -l 1M", "peer", [20e9, 20e9, 20e9], at_least=1.15),
    entry("linkgauge run, second run", "ours", [41e9, 41e9, 41e9]),
    entry("floor.py copy", "floor", [50e9, 50e9, 50e9]),
)
PAIRS = case(
    "rr-10",
    entry("linkgauge run --workload rr", "ours", [100_000.0], unit="transactions/s"),
    entry("neper tcp_rr -F 10", "peer", [95_000.0], at_least=1.0, cpu_at_most=1.1, unit="transactions/s"),
)
BEHIND, SHORT = "### Where linkgauge is behind a peer", "### Where linkgauge is short of a target"


def test_the_report_begins_with_what_is_behind() -> None:
    """After the facts about the run; each row has all columns."""
    text = report_text(results(STREAM, PAIRS))
    about, _, tables = text.partition(BEHIND)
    assert "Measured on 2026-01-02 on A CPU, 2 virtual cores, Linux 6.1, cubic, in 24 minutes" in about
    assert "medians of 3 rounds of 2 s" in about
    assert "linkgauge 0.1.0, iperf3 3.21, neper 1.1.0. Not installed, and left out: ethr." in about
    assert "stolen: 4; disturbed and counted nevertheless: 1" in about
    assert "One core copies 9.3 GiB/s in memory, 80 Gb/s." in about
    assert tables.splitlines()[3] == (
        "| best | `linkgauge run` | `iperf3 -Z -l 1M` | 41.0 · 50.0 Gb/s | 0.82 (0.80–0.84) | 1 missed | 1.00 | 1 "
        "| 0.82 · 1.00 |"
    )
    assert (
        "| rr-10 | `linkgauge run --workload rr` | `neper tcp_rr -F 10` | 100,000 · 95,000 /s | 1.05 (1.05–1.05) "
        "| 1 | 1.00 | 1.1 |  |"
    ) in tables
    assert text.index(BEHIND) < text.index(SHORT) < text.index("as fast or faster") < text.index("other states")


def test_a_heading_without_rows_says_so() -> None:
    """Behind nobody is a result, too."""
    text = report_text(results(PAIRS))
    assert f"{BEHIND}\nNothing.\n" in text


def test_a_missed_target_within_the_interval_may_be_chance() -> None:
    """A ratio of 1.0 with an interval from 0.8 to 1.25 says little about a target of 1.15."""
    noisy = case(
        "best",
        entry("linkgauge run", "ours", [80, 100, 125]),
        entry("iperf3", "peer", [100, 100, 100], at_least=1.15),
        entry("xfr", "peer", [100, 100, 100], at_least=1.5),
    )
    text = report_text(results(noisy))
    assert "1.15 missed, may be chance |" in text
    assert "1.5 missed |" in text


def test_failures_and_a_broken_off_run_are_named_before_the_tables() -> None:
    """In the tool's words, which cannot end a cell or begin a tag."""
    broken = case("best", entry("linkgauge run", "ours", [1e9]), entry("iperf3 --skip-rx-copy", "peer", []))
    broken.entries[1].failure = "<script>|no such option"
    broken.ours.retries.append("did not end within 23 s")
    found = results(broken)
    found.is_interrupted = True
    text = report_text(found)
    assert text.startswith("**This benchmark was broken off")
    assert "- best, `iperf3 --skip-rx-copy`: ‹script›\\|no such option" in text
    assert "- best, `linkgauge run`: did not end within 23 s" in text
    assert text.index("What failed twice") < text.index("failed once") < text.index(BEHIND)


def test_the_short_table_has_the_strongest_peer_of_each_case() -> None:
    """The one against which linkgauge looks worst, and never linkgauge itself."""
    rows = [line for line in summary_text(results(STREAM, PAIRS)).splitlines() if line.startswith("| the case")]
    best, pairs = rows
    assert best == (
        "| the case best | `linkgauge run` | `iperf3 -Z -l 1M` | 41.0 · 50.0 Gb/s | 0.82 (0.80–0.84) | 1.00 |"
    )
    assert pairs.startswith("| the case rr-10 | `linkgauge run --workload rr` | `neper tcp_rr -F 10` |")


def test_the_limit_and_the_loss_of_each_sender_of_datagrams_are_in_the_report() -> None:
    """One that loses next to nothing has none."""
    ours, peer = EntryResult("linkgauge run", "ours", "bit/s"), EntryResult("iperf3", "peer", "bit/s", 1.5)
    ours.rounds = {n: Round(5e9, 1.0, lost_share=lost) for n, lost in enumerate((0.0, 0.001, 0.5))}
    peer.rounds = {n: Round(1e9, 1.0, limit_bit_s=1_000_000_000, lost_share=0.01) for n in range(3)}
    text = report_text(results(case("udp-1400", ours, peer), STREAM))
    tables = text[text.index("### Datagrams: the limit") :].split("\n\n")[0].splitlines()
    assert tables[3:] == [
        "| udp-1400 | `linkgauge run` | nothing | 5.0 Gb/s | 0.10% |",
        "| udp-1400 | `iperf3` | 1,000 Mb/s | 1.0 Gb/s | 1.00% |",
    ]
    assert "### Datagrams" not in report_text(results(STREAM))


def test_the_rate_that_is_sent_is_compared_with_the_one_requested() -> None:
    """By more than 0.5 % too little or too much is missed; what the sender left out is said."""
    rows = [
        EntryResult(f"--rate {mega}M", "ours", "bit/s", requested_bit_s=mega * 1_000_000) for mega in (1, 10, 1_000)
    ]
    rows[0].rounds = {n: Round(0.996e6, lost_share=0.0, skipped=0) for n in range(3)}
    rows[1].rounds = {n: Round(10.051e6, lost_share=0.0) for n in range(3)}
    rows[2].rounds = {n: Round(0.99e9, lost_share=0.0, skipped=2_000 * n) for n in range(3)}
    text = report_text(results(case("udp-rates", *rows)))
    assert text[text.index("### Datagrams: the rate") :].split("\n\n")[0].splitlines()[3:] == [
        "| 1 Mb/s | `--rate 1M` | 0.996 Mb/s | -0.40% | 0.5% | 0 |",
        "| 10 Mb/s | `--rate 10M` | 10.051 Mb/s | +0.51% | 0.5% missed | unknown |",
        "| 1,000 Mb/s | `--rate 1000M` | 990.000 Mb/s | -1.00% | 0.5% missed | 2,000 |",
    ]
    assert "### Datagrams: the limit" not in text


def test_a_slow_rate_is_no_rate_of_0_gb_s() -> None:
    """A sender of datagrams may be limited to 1 Mb/s."""
    rates = (978_000, 162_000_000, 999_000_000, 1_000_000_000, 41e9)
    assert [rate_text(rate, "bit/s") for rate in rates] == [
        *("1.0 Mb/s", "162.0 Mb/s", "999.0 Mb/s", "1.0 Gb/s", "41.0 Gb/s"),
    ]


@pytest.mark.every
def test_rows_and_picture_are_written_as_files(tmp_path: Path) -> None:
    """Every comparison is a row of the CSV; without one there is no picture."""
    write_csv(results(STREAM, PAIRS), tmp_path / "bench.csv")
    with (tmp_path / "bench.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["other"] for row in rows] == [
        *("iperf3 -Z -l 1M", "iperf -l 1M", "neper tcp_rr -F 10", "linkgauge run, second run"),
    ]
    assert float(rows[0]["ratio"]) == 0.82
    draw(results(STREAM, PAIRS), tmp_path / "bench.png")
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
    draw(results(), tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
    assert "Nothing." in report_text(results())
