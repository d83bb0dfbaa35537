"""The warning about other tests of the endpoint: when it comes, and how often."""

from linkgauge.engine.model.counters.samples import OtherTests, Sample
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.protocol.other_tests_warning import OtherTestsWatch

ALONE = OtherTests()
PART = OtherTests(1, 2, 2_000_000, 0)
WHOLE = OtherTests(1, 2, 5_650_000, 0)


def warnings(*others: OtherTests | None) -> list[str | None]:
    """Return the warning after each sample of a second, and at the end."""
    watch = OtherTestsWatch()
    samples = [Sample(End.FAR, n, n * SECOND_NS, SECOND_NS, (), others=each) for n, each in enumerate(others, 1)]
    return [*(watch.take(sample) for sample in samples), watch.take_rest()]


def test_others_are_named_once_when_they_begin_with_the_rate_of_a_whole_sample() -> None:
    """They began somewhere in the first one."""
    text = "another test on this endpoint: 1 test, 2 sessions, receives 45.2 Mb/s"
    assert warnings(ALONE, PART, WHOLE, WHOLE, WHOLE) == [None, None, text, None, None, None]


def test_others_of_one_sample_are_named_with_what_is_known() -> None:
    """At the end of the run, or when they are gone."""
    text = "another test on this endpoint: 1 test, 2 sessions, receives 16.0 Mb/s"
    assert warnings(PART) == [None, text]
    assert warnings(PART, ALONE) == [None, text, None]


def test_a_slow_test_is_named_with_what_it_has_carried() -> None:
    """64 kb/s of iperf3 are 128 KiB every 16 s."""
    slow = OtherTests(1, 1, 0, 8_000)
    text = "another test on this endpoint: 1 test, 1 session, sends 0.064 Mb/s"
    assert warnings(slow, OtherTests(1, 1, 0, 0)) == [None, text, None]


def test_more_of_them_are_named_again_and_so_are_those_that_come_back_after_seconds() -> None:
    """A short pause is none."""
    more = OtherTests(2, 3, 1_000_000, 2_000_000)
    text = "other tests on this endpoint: 2 tests, 3 sessions, receives 8 Mb/s, sends 16.0 Mb/s"
    assert warnings(WHOLE, WHOLE, more, more, WHOLE, more)[2:] == [None, text, None, None, None]
    told = [each is not None for each in warnings(WHOLE, WHOLE, *[ALONE] * 3, WHOLE, WHOLE, *[ALONE] * 4, WHOLE)]
    assert told == [False, True, *[False] * 10, True]


def test_an_endpoint_that_does_not_tell_is_no_reason_for_a_warning() -> None:
    """Neither is one without other tests."""
    assert set(warnings(None, None, ALONE, ALONE)) == {None}
