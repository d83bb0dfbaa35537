"""Ratios, their intervals, targets and order."""

import pytest
from comparison import SHARE, compare_case, rank, ratio_interval
from measurements import CaseResult, EntryResult, Round

from .example_results import case, entry


def test_the_interval_contains_the_ratio_and_shrinks_to_it_without_noise() -> None:
    """The same rounds give the same interval each time."""
    assert ratio_interval([2.0] * 7, [1.0] * 7) == (2.0, 2.0, 2.0)
    ours, theirs = [9.0, 10.0, 11.0, 12.0, 8.0], [5.0, 5.5, 4.5, 5.0, 6.0]
    ratio, low, high = ratio_interval(ours, theirs)
    assert ratio == 2.0
    assert low < ratio < high
    assert (ratio, low, high) == ratio_interval(ours, theirs)


def test_a_drift_of_the_machine_widens_no_interval_of_pairs() -> None:
    """Both values of a round are drawn together: each round is half as fast as the one before."""
    rates = [100 / 2**number for number in range(7)]
    ratio, low, high = ratio_interval([2 * rate for rate in rates], rates)
    assert (low, ratio, high) == (2.0, 2.0, 2.0)


def test_a_ratio_is_that_of_rounds_which_both_have() -> None:
    """After Ctrl-C one of two entries has a round more, and another may be missing from the middle."""
    ours, other = entry("linkgauge run", "ours", [10, 20, 30]), entry("iperf3", "peer", [5, 10])
    (comparison,) = compare_case(case("as-it-comes", ours, other))
    assert (comparison.rounds, comparison.our_rate, comparison.other_rate) == (2, 15, 7.5)
    del other.rounds[0]
    (comparison,) = compare_case(case("as-it-comes", ours, other))
    assert (comparison.rounds, comparison.our_rate, comparison.other_rate) == (1, 20, 10)
    other.rounds.clear()
    assert not compare_case(case("as-it-comes", ours, other))


def test_what_failed_is_not_compared() -> None:
    """Neither a peer that failed, nor any peer of ours that failed."""
    ours, other = entry("linkgauge run", "ours", [10]), entry("iperf3", "peer", [5])
    other.failure = "exit status 1"
    assert not compare_case(case("as-it-comes", ours, other))
    other.failure, ours.failure = None, "exit status 3"
    assert not compare_case(case("as-it-comes", ours, other))


def test_the_fastest_floor_is_the_limit() -> None:
    """Both rates are shares of its median; a floor is no row."""
    floors = (entry("floor.py copy", "floor", [20, 20]), entry("floor.py sendfile", "floor", [40, 40]))
    ours, other = entry("linkgauge run", "ours", [30, 30]), entry("iperf3", "peer", [10, 10])
    (comparison,) = compare_case(case("as-it-comes", ours, other, *floors))
    assert (comparison.our_floor_share, comparison.other_floor_share) == (0.75, 0.25)
    (comparison,) = compare_case(case("as-it-comes", ours, other))
    assert comparison.our_floor_share is None


def test_rates_that_are_requested_are_not_compared_with_each_other() -> None:
    """Each is compared with what was requested, in a table of its own."""
    ours, other = entry("--rate 1M", "ours", [1e6]), entry("--rate 1G", "ours", [1e9])
    ours.requested_bit_s, other.requested_bit_s = 1_000_000, 1_000_000_000
    assert not compare_case(case("udp-rates", ours, other))


def test_cpu_is_compared_over_the_rounds_that_have_it() -> None:
    """One that is too short to read has none."""
    ours = EntryResult("linkgauge run", "ours", "bit/s", rounds={0: Round(1, 2.0), 1: Round(1, None)})
    other = EntryResult("iperf3", "peer", "bit/s", None, 1.5, rounds={0: Round(1, 1.0), 1: Round(1, 100.0)})
    (comparison,) = compare_case(CaseResult("best", "the best", [ours, other]))
    assert comparison.cpu_ratio == 2.0
    assert comparison.misses_cpu
    assert comparison.misses_target
    assert not comparison.misses_rate


def test_a_run_whose_process_is_stopped_in_turn_is_compared_with_itself_too() -> None:
    """0.9 of what it carries while it does not draw, against 0.95 without a screen."""
    ours = EntryResult("the app", "ours", "bit/s", rounds={0: Round(90, 1.0, 100)})
    other = EntryResult("the command", "ours", "bit/s", 0.98, rounds={0: Round(190, 1.0, 200)})
    rates, shares = compare_case(CaseResult("drawing", "drawing", [ours, other]))
    assert rates.ratio == pytest.approx(90 / 190)
    assert (shares.unit, shares.our_rate, shares.other_rate) == (SHARE, 0.9, 0.95)
    assert shares.ratio == pytest.approx(0.9 / 0.95)
    assert shares.misses_rate
    assert shares.cpu_ratio is None


def test_what_is_behind_comes_first_and_the_worst_of_it_before_the_rest() -> None:
    """Then what misses a target, then what is ahead, then linkgauge against itself."""
    ours = entry("linkgauge run", "ours", [100])
    others = (
        entry("ahead", "peer", [50], at_least=1.15),
        entry("a little behind", "peer", [110]),
        entry("short", "peer", [90], at_least=1.15),
        entry("second run", "ours", [200]),
        entry("far behind", "peer", [300], at_least=1.0),
        entry("sessions", "ours", [200], at_least=0.9),
        entry("shorter", "peer", [100], at_least=1.15),
    )
    ranking = rank(compare_case(case("best", ours, *others)))
    assert [row.other for row in ranking.comparisons] == [
        *("far behind", "a little behind"),
        *("sessions", "shorter", "short"),
        *("ahead", "second run"),
    ]
    assert [len(part) for part in (ranking.behind, ranking.short, ranking.ahead, ranking.itself)] == [2, 3, 1, 1]
