"""The codes by which a device joins an app."""

from itertools import count

import pytest
from linkgauge.engine.model.errors import RequestDeclined
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.endpoint.browser.join_codes import WRONG_IN_ALL, WRONG_OF_ADDRESS, WRONG_OF_CODE, JoinCodes

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


def test_a_few_wrong_codes_make_a_new_one() -> None:
    """What was guessed so far is of no use."""
    room = codes()
    for number in range(WRONG_OF_CODE):
        refusal(room, "999999", f"10.0.{number}.1")
    assert room.code == "100001"
    assert "not the code" in refusal(room, "100000")


def test_wrong_codes_have_a_budget_by_address_and_in_all() -> None:
    """It is full again after a minute."""
    room = codes()
    for _ in range(WRONG_OF_ADDRESS):
        room.check_budget(PHONE, 0)
        refusal(room, "999999")
    with pytest.raises(RequestDeclined, match="too many wrong codes"):
        room.check_budget(PHONE, 59 * SECOND_NS)
    room.check_budget("10.1.0.1", 0)
    room.check_budget(PHONE, 61 * SECOND_NS)
    for number in range(WRONG_IN_ALL):
        refusal(room, "999999", f"10.2.{number}.1", 61 * SECOND_NS)
    with pytest.raises(RequestDeclined, match="too many wrong codes"):
        room.check_budget("10.3.0.1", 61 * SECOND_NS)


def test_codes_are_six_digits_and_differ() -> None:
    """They are drawn at random."""
    made = {JoinCodes().code for _ in range(20)}
    assert len(made) > 15
    assert all(len(code) == 6 and code.isdecimal() for code in made)
