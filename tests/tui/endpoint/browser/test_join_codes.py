"""The codes by which a device joins an app."""

from itertools import count

import pytest
from linkgauge.engine.model.errors import RequestDeclined
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.endpoint.browser.join_codes import CODE_DIGITS, WRONG_IN_ALL, WRONG_OF_ADDRESS, JoinCodes

PHONE = "192.168.1.23"


def codes() -> JoinCodes:
    """Return codes that count upwards from 100000."""
    numbers = count(100_000)
    return JoinCodes(lambda: str(next(numbers)))


def refusal(room: JoinCodes, text: str, address: str = PHONE, now_ns: int = 0) -> str:
    """Return why a code is refused."""
    with pytest.raises(RequestDeclined) as caught:
        room.join(text, address, now_ns)
    return str(caught.value)


def test_a_code_counts_once_and_its_pass_again_and_again() -> None:
    """A second device with the same code is told so; the first one may reload its page."""
    room = codes()
    issued = room.join("100000", PHONE, 0)
    assert room.code == "100001"
    assert "used already" in refusal(room, "100000")
    assert room.join(issued, PHONE, 0) == issued
    later = room.join("100001", "192.168.1.24", 0)
    assert later != issued
    assert "not the code" in refusal(room, issued)


@pytest.mark.parametrize("text", ["", "1", "100000\0", "äöü", "0" * 64, "１０００００"])
def test_any_other_text_is_not_the_code(text: str) -> None:
    """Neither another alphabet's digits nor a longer one."""
    assert "not the code" in refusal(codes(), text)


def test_a_pass_counts_while_the_budget_of_its_address_is_spent() -> None:
    """A page that is loaded again goes on, whatever others at its address have tried."""
    room = codes()
    issued = room.join("100000", PHONE, 0)
    for _ in range(WRONG_OF_ADDRESS):
        refusal(room, "999999")
    assert "too many" in refusal(room, room.code)
    assert room.join(issued, PHONE, 0) == issued


def test_wrong_codes_have_a_budget_by_address_and_in_all() -> None:
    """It is full again after a minute. The code stays the same: the user may be typing it."""
    room = codes()
    for _ in range(WRONG_OF_ADDRESS):
        assert "not the code" in refusal(room, "999999")
    assert "too many wrong codes" in refusal(room, "100000", now_ns=59 * SECOND_NS)
    assert "not the code" in refusal(room, "999999", "10.1.0.1")
    assert "not the code" in refusal(room, "999999", now_ns=60 * SECOND_NS)
    later = 121 * SECOND_NS
    for number in range(WRONG_IN_ALL):
        refusal(room, "999999", f"10.2.{number // 250}.{number % 250}", later)
    assert "too many wrong codes" in refusal(room, "100000", "10.3.0.1", later)
    assert room.join("100000", "10.3.0.1", later + 60 * SECOND_NS)


def test_a_stranger_with_many_addresses_does_not_keep_a_device_out() -> None:
    """Even 30 addresses that spend their whole budgets in one minute."""
    room = codes()
    for number in range(30):
        for _ in range(WRONG_OF_ADDRESS + 1):
            refusal(room, "999999", f"10.2.0.{number}")
    assert room.join("100000", PHONE, 0)


def test_a_day_of_guesses_at_the_whole_budget_is_hopeless() -> None:
    """Less than one in a thousand."""
    assert WRONG_IN_ALL * 60 * 24 * 1_000 < 10**CODE_DIGITS


def test_codes_are_ten_digits_and_differ() -> None:
    """They are drawn at random."""
    made = {JoinCodes().code for _ in range(20)}
    assert len(made) > 15
    assert all(len(code) == CODE_DIGITS and code.isdecimal() for code in made)
