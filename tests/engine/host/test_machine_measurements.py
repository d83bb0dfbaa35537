"""Measurements that each of the machines that share a directory made once."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from linkgauge.engine.host.machine_measurements import Machine, identify_machine, load_measurement, save_measurement

HERE = Machine("web-07", "Linux 6.12", 8)
OTHERS = (Machine("db-02", "Linux 6.12", 8), Machine("web-07", "Linux 6.18", 8), Machine("web-07", "Linux 6.12", 4))


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement."""

    bit_s: int


def test_each_machine_has_its_own(tmp_path: Path) -> None:
    """Another kernel or number of cores is another machine, and a new value replaces that of one machine alone."""
    path = tmp_path / "shared" / "measured.json"
    for bit_s, machine in enumerate((HERE, *OTHERS)):
        assert load_measurement(path, Measured, machine) is None
        save_measurement(path, machine, Measured(bit_s))
    save_measurement(path, HERE, Measured(9))
    assert [load_measurement(path, Measured, machine) for machine in (HERE, *OTHERS)] == [
        Measured(9), Measured(1), Measured(2), Measured(3),
    ]  # fmt: skip
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"KEY": 5}', '{"KEY": {}}', '{"KEY": {"bit_s": "1"}}', " " * 2_000_000]
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    """The next measurement replaces it."""
    path = tmp_path / "measured.json"
    path.write_text(text.replace("KEY", HERE.key))
    assert load_measurement(path, Measured, HERE) is None
    save_measurement(path, HERE, Measured(1))
    assert load_measurement(path, Measured, HERE) == Measured(1)


def test_this_machine_is_the_same_each_time() -> None:
    """Its kernel and its cores are part of it."""
    assert identify_machine() == identify_machine()
    assert identify_machine().cores > 0
