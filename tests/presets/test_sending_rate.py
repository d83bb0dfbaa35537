"""The rate of datagrams: as the user gives it, as the link lets expect, and if neither is known."""

from functools import partial

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.sending_rate import choose_rate, expected_rate_bit_s
from linkgauge.presets.wire import Variant

GBE = ExpectedRate(957_087_000, "computed", "the wire model")
BOTH = ExpectedRate(1_914_174_000, "computed", "the wire model")


def find_gbe(settings: Settings) -> Expectation:
    """Return what Gigabit Ethernet carries in each direction."""
    match settings.direction:
        case Direction.OUT:
            return Expectation(out=GBE)
        case Direction.IN:
            return Expectation(in_=GBE)
        case Direction.DUPLEX:
            return Expectation(total=BOTH)


def find_nothing(_settings: Settings) -> Expectation:
    """Return no expectation."""
    return Expectation()


@pytest.mark.parametrize("direction", Direction)
def test_each_direction_is_sent_at_what_is_expected_of_it(direction: Direction) -> None:
    """A total of both directions is shared."""
    settings, notice = choose_rate(Settings(direction), None, find_gbe, "gbe-fd-1500")
    assert settings.rate_bit_s == 957_087_000
    assert notice == "sending 957.1 Mb/s, the expected UDP payload of gbe-fd-1500"
    assert expected_rate_bit_s(settings, find_gbe) == 957_087_000


def test_without_an_expected_rate_ten_megabits_are_sent_and_reported() -> None:
    """Unless the user gives a rate. `expected` is refused then."""
    settings, notice = choose_rate(Settings(), None, find_nothing)
    assert settings.rate_bit_s == 10_000_000
    assert "--rate gives another" in notice
    assert choose_rate(Settings(), 5_000, find_nothing) == (Settings(rate_bit_s=5_000), "")
    with pytest.raises(PlanError, match="rate expected is invalid; no UDP rate is known"):
        choose_rate(Settings(), "expected", find_nothing)


def test_no_limit_and_a_search_are_for_those_who_ask_for_them() -> None:
    """A search starts at a fifth of the expected rate, in one session."""
    assert choose_rate(Settings(rate_bit_s=5_000), "max", find_gbe) == (Settings(), "")
    search, notice = choose_rate(Settings(), "search", find_gbe)
    assert (search, notice) == (Settings(rate_bit_s=191_417_400, searches_rate=True), "")
    assert choose_rate(Settings(), "search", find_nothing)[0].rate_bit_s == 10_000_000
    with pytest.raises(PlanError, match="give --sessions 1"):
        choose_rate(Settings(sessions=2), "search", find_gbe)


def test_an_expected_low_rate_is_of_the_small_datagrams_that_it_sends() -> None:
    """Sixteen sessions at 61 kb/s with datagrams of 48 bytes would take twice what a line of 64 kb/s carries."""
    catalog = load_catalog()
    variant = Variant(line_rate_bit_s=64_000)
    find = partial(find_expectation, catalog.find("gbe-fd-1500"), workload=Workload.UDP, variant=variant)
    one, many = (expected_rate_bit_s(Settings(sessions=sessions), find) for sessions in (1, 16))
    assert one is not None
    assert many is not None
    assert many < one / 1.5
    settings, _notice = choose_rate(Settings(sessions=16), None, find)
    assert settings.rate_bit_s == many
