"""The layout of a heat map: the size of cells by the room for them, and the heads of columns."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from linkgauge.tui.mesh.map_layout import Density, arrange, choose_layout, column_names, lay_out, numbered_columns


def names(count: int) -> list[str]:
    """Return the names of `count` hosts."""
    return [f"db-{number:02}" for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "size", "density"),
    [
        (4, (80, 14), Density.RATES),
        (12, (118, 26), Density.RATES),
        (12, (78, 14), Density.VALUES),
        (64, (138, 56), Density.MARKS),
        (64, (75, 36), Density.OVERVIEW),
        (64, (78, 14), Density.MARKS),
    ],
)
def test_cells_are_as_large_as_the_room_for_all_of_them_allows(
    count: int, size: tuple[int, int], density: Density
) -> None:
    """If even the smallest do not fit, the map has marks and scrolls."""
    assert choose_layout(names(count), *size).density is density


@given(st.integers(1, 70), st.sampled_from(Density), st.integers(20, 250))
def test_each_row_is_at_its_line(count: int, density: Density, width: int) -> None:
    """Lines below the last have no row."""
    layout = lay_out(names(count), density, width)
    assert all(row in layout.rows_at(layout.line_of(row)) for row in range(count))
    rows = [row for line in range(0, layout.lines, layout.cell_lines) for row in layout.rows_at(line)]
    assert rows == list(range(count))
    assert layout.rows_at(layout.lines) == ()


def test_cells_of_a_few_hosts_fill_more_of_a_large_screen() -> None:
    """Up to a size beyond which they do not grow."""
    small, large = (lay_out(names(4), Density.RATES, *size) for size in ((60, 10), (138, 56)))
    assert (small.cell_width, small.cell_lines) < (large.cell_width, large.cell_lines) == (18, 4)


def test_the_panels_leave_the_map_the_room_for_larger_cells() -> None:
    """Below a wide map, beside a high one."""
    assert not arrange(names(12), 118, 36).is_beside
    assert arrange(names(64), 118, 36).is_beside
    assert arrange(names(64), 198, 56).is_beside
    assert not arrange(names(64), 78, 20).is_beside


def test_the_heads_of_columns_tell_the_hosts_apart() -> None:
    """A number keeps all its digits. Names that differ in too many characters have no heads."""
    assert column_names(["db-01.lan", "db-02.lan"], Density.VALUES) == ("01", "02")
    assert column_names(["db-11", "db-12"], Density.VALUES) == ("11", "12")
    assert column_names(["a", "b", "web"], Density.VALUES) == ("a", "b", "web")
    assert column_names(["frankfurt", "amsterdam"], Density.VALUES) == ()
    assert column_names(["db-01", "db-02"], Density.MARKS) == ()
    assert column_names([], Density.VALUES) == ()


def test_every_fifth_of_narrow_columns_has_its_number_and_that_of_the_cursor() -> None:
    """Numbers that would touch the cursor's give way. The last one is whole as well."""
    assert numbered_columns(12, 2, None) == "1       5         10    "
    assert numbered_columns(12, 2, 3) == "1     4           10    "
    assert numbered_columns(12, 1, 11) == "1   5     12"
    assert numbered_columns(1, 1, 0) == "1"


@given(st.integers(1, 130), st.sampled_from([1, 2]))
@example(129, 1)
def test_the_number_of_the_cursors_column_is_always_whole(count: int, width: int) -> None:
    """At each place of the cursor, also at the right end, where the number begins further to the left."""
    for cursor in range(count):
        assert str(cursor + 1) in numbered_columns(count, width, cursor).split()
