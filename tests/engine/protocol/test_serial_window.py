"""The window of serials: each once, in any order, and none from before the window."""

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.serial_window import WINDOW_SERIALS, SerialWindow


def test_serials_that_overtake_each_other_are_taken_once() -> None:
    """The order of arrival does not matter; a repeat does."""
    window = SerialWindow()
    assert [window.take(serial) for serial in (2, 1, 5, 4, 2, 5, 3, 1)] == [
        *(True, True, True, True),
        *(False, False, True, False),
    ]


def test_what_is_far_behind_counts_as_taken() -> None:
    """Nothing remembers it any more."""
    window = SerialWindow()
    assert window.take(WINDOW_SERIALS + 1)
    assert not window.take(1)
    assert window.take(2)
    assert window.take(10**18)
    assert not window.take(3)


def test_zero_is_no_serial() -> None:
    """It is what nothing begins with."""
    assert not SerialWindow().take(0)


@given(st.lists(st.integers(1, 3 * WINDOW_SERIALS), max_size=200))
def test_no_serial_is_ever_taken_twice(serials: list[int]) -> None:
    """Whatever their order, and however far they jump."""
    window = SerialWindow()
    taken = [serial for serial in serials if window.take(serial)]
    assert len(taken) == len(set(taken))
