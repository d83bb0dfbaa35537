"""A machine's ceiling: stored for each machine, and found by mode and sessions."""

from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.near.ceiling import (
    CEILING_FILE_NAME,
    Ceiling,
    CeilingRate,
    identify_machine,
    load_ceiling,
    save_ceiling,
)

RATES = (CeilingRate(Mode.COPY, 1, 40_000), CeilingRate(Mode.COPY, 4, 60_000), CeilingRate(Mode.DISCARD, 1, 70_000))
HERE = Ceiling(identify_machine(), "2026-11-21T01:15:30+00:00", "cubic", RATES)


def test_a_ceiling_is_saved_for_each_machine(tmp_path: Path) -> None:
    """Another kernel is another machine, and neither takes the other's place."""
    other = replace(HERE, machine=replace(HERE.machine, system="Linux 2.6.32"), congestion=None)
    assert load_ceiling(tmp_path) is None
    save_ceiling(tmp_path, HERE)
    save_ceiling(tmp_path, other)
    assert load_ceiling(tmp_path) == HERE
    assert load_ceiling(tmp_path, other.machine) == other
    newer = replace(HERE, rates=RATES[:1])
    save_ceiling(tmp_path, newer)
    assert load_ceiling(tmp_path) == newer


def test_a_mode_has_the_rate_of_the_most_sessions_within_the_requested_number() -> None:
    """None is unknown."""
    single, four = HERE.rate(Mode.COPY), HERE.rate(Mode.COPY, 16)
    assert single is RATES[0]
    assert four is RATES[1]
    assert HERE.rate(Mode.COPY, 3) is RATES[0]
    assert HERE.rate(Mode.SENDFILE) is None


@pytest.mark.parametrize(("pages", "fastest"), [(80, Mode.SENDFILE), (30, Mode.COPY), (None, None)])
def test_the_mode_with_the_higher_rate_is_the_fastest(pages: int | None, fastest: Mode | None) -> None:
    """If one of the two was not measured, neither is."""
    copy = CeilingRate(Mode.COPY, 1, 50, 45, 55)
    rates = (copy,) if pages is None else (copy, CeilingRate(Mode.SENDFILE, 1, pages, pages - 5, pages + 5))
    assert replace(HERE, rates=rates).fastest_mode() is fastest


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "\x00"])
def test_a_damaged_file_is_no_ceiling_and_is_replaced(tmp_path: Path, text: str) -> None:
    """It can be measured again."""
    (tmp_path / CEILING_FILE_NAME).write_text(text, encoding="utf-8")
    assert load_ceiling(tmp_path) is None
    save_ceiling(tmp_path, HERE)
    assert load_ceiling(tmp_path) == HERE


def test_a_saved_ceiling_of_another_version_is_accepted(tmp_path: Path) -> None:
    """Then it is unknown, not an error."""
    text = (tmp_path / CEILING_FILE_NAME).as_posix()
    Path(text).write_text(f'{{"{HERE.machine.key}": {{"rates": 3}}}}', encoding="utf-8")
    assert load_ceiling(tmp_path) is None


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    """With the path."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunLogError, match="ceiling"):
        save_ceiling(tmp_path / "file" / "below", HERE)
