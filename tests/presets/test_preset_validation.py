"""The validation of presets: a fault is reported with its key, and costs only the preset that has it."""

from pathlib import Path

import pytest

from .preset_files import GOOD, HEAD, own, read

RATED = """
tables = [{ table = "1", columns = ["a_mbit_s", "a_mib_s", "cpu_percent"], rows = [
  { row = "x", values = [948, 113.0, 12.5] }, { row = "y", values = [94, 11.2, 0] } ] }]
"""


@pytest.mark.parametrize(
    ("change", "key", "expected"),
    [
        ("mtu = 1500", "mine-1.mtu", "expected one of"),
        ('name_ja = 3', "mine-1.name_ja", "expected text"),
        ("suggested_window_bytes = 12", "mine-1.suggested_window_bytes", "2048 to 1073741824, got 12"),
        ('suggested_window_bytes = "56K"', "mine-1.suggested_window_bytes", "a whole number"),
        ("source = 1", "mine-1.source", "expected it once, at the top"),
        ("tables = [{ table = '1', columns = ['a_mbit_s'], rows = [{ row = 'x', values = [1, 2] }] }]",
         "mine-1.tables.1.x", "expected 1 values, got 2"),
        ("tables = [{ table = '1', columns = ['a'], rows = [{ row = 'x', values = ['1'] }] }]",
         "mine-1.tables.rows.values", "expected a number, got '1'"),
        ("tables = [{ table = '1', columns = ['a_gbit_s'], rows = [{ row = 'x', values = [1e300] }] }]",
         "mine-1.tables.1.x", "expected numbers up to 1e+15, got 1e+300"),
        ("tables = [{ table = '1', columns = ['a', 'a'], rows = [{ row = 'x', values = [1, 2] }] }]",
         "mine-1.tables.1.x.a", "expected it once"),
        (RATED + "rates = [{ flow = 'simplex', table = '1', column = 'a_mbit_s' }]",
         "mine-1.rates[1]", "of one number of this preset, got '1, a_mbit_s'"),
        (RATED + "rates = [{ flow = 'simplex', table = '1', column = 'b', row = 'x' }]",
         "mine-1.rates[1]", "of one number of this preset, got '1, x, b'"),
        (RATED + "rates = [{ flow = 'both', table = '1', column = 'a_mbit_s', row = 'x' }]",
         "mine-1.rates.flow", "one of simplex, out, in, duplex, exchange, got 'both'"),
        (RATED + "rates = [{ flow = 'out', table = '1', column = 'cpu_percent', row = 'x' }]",
         "mine-1.rates[1].column", "a column in mbit_s, gbit_s, mib_s or transactions_s"),
        (RATED + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x', sessions = 0 }]",
         "mine-1.rates[1].sessions", "1 to 128, got 0"),
        (RATED + "marks = [{ table = '1', column = 'a_mib_s', row = 'z', reason = 'r' }]",
         "mine-1.marks[1]", "a table, row and column of this preset"),
        (RATED + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x' }]\n"
         "marks = [{ table = '1', column = 'a_mbit_s', row = 'x', reason = 'r' }]",
         "mine-1.rates[1]", "not marked as a slip"),
        (RATED + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x', cpu_column = 'b' }]",
         "mine-1.rates[1].cpu_column", "a column of the same row, got 'b'"),
        (RATED + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x', baseline_row = 'z' }]",
         "mine-1.rates[1].baseline_row", "a row with the same column, got 'z'"),
        (RATED.replace("948", "1e-7") + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x' }]",
         "mine-1.rates[1]", "a rate above 0"),
        (RATED.replace("948", "1e12") + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x' }]",
         "mine-1.rates[1]", "up to 1e+15 bit/s"),
        ("computed = ['simplex']", "mine-1.computed", "a full duplex link with framing, line_rate_bit_s and mtu"),
    ],
)  # fmt: skip
def test_a_faulty_preset_is_reported_by_key_and_costs_only_itself(
    tmp_path: Path, change: str, key: str, expected: str
) -> None:
    """The problem has the file, the key and the expected value. The presets around it are loaded."""
    wrong = GOOD.format(id="mine-1") + change + "\n"
    catalog = read(tmp_path, HEAD + GOOD.format(id="before") + wrong + GOOD.format(id="after"))
    assert own(catalog) == ["before", "after"]
    (problem,) = catalog.problems
    assert problem.path == str(tmp_path / "mine.toml")
    assert problem.key == key
    assert expected in problem.expected
    assert str(problem) == f"{problem.path}: {problem.key}: {problem.expected}"


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ("{ framing = 'carrier pigeon' }", "preset 1.link.framing"),
        ("{ framing = 'ethernet', line_rate_bit_s = 0 }", "mine-1.link.line_rate_bit_s"),
        ("{ framing = 'ethernet', mtu_bytes = 67 }", "mine-1.link.mtu_bytes"),
        ("{ framing = 'ethernet', duplex = 'quarter' }", "mine-1.link.duplex"),
        ("{ framing = 'ethernet', timestamps = 1 }", "mine-1.link.timestamps"),
        ("{}", "mine-1.link"),
        ("1", "mine-1.link"),
    ],
)
def test_faults_of_a_link_are_reported_by_key(tmp_path: Path, link: str, key: str) -> None:
    """A preset is named by its id, or by its place if the id is unusable."""
    preset_id = "mine-1" if key.startswith("mine") else "No Id"
    text = f'[[preset]]\nid = "{preset_id}"\nname = "Mine"\nfamily = "Ethernet"\nlink = {link}\n'
    (problem,) = read(tmp_path, HEAD + text).problems
    assert problem.key == key


@pytest.mark.parametrize("preset_id", ["", "Mine", "a b", "a/b", "-a", "a--b", "auto", "é", "a" * 65, "a\\u0007"])
def test_an_id_unfit_for_the_command_line_is_refused(tmp_path: Path, preset_id: str) -> None:
    """Ids are typed on a command line, and are cells of CSV."""
    (problem,) = read(tmp_path, HEAD + GOOD.format(id=preset_id)).problems
    assert problem.key.endswith(".id")
    assert "small letters" in problem.expected


@pytest.mark.parametrize(
    ("sweep", "key"),
    [
        ("preset = 'nowhere', direction = 'out', message_bytes = [64], window_bytes = [4096]", "s.preset"),
        ("preset = 'loopback', direction = 'up', message_bytes = [64], window_bytes = [4096]", "s.direction"),
        ("preset = 'loopback', direction = 'out', message_bytes = [], window_bytes = [4096]", "s"),
        ("preset = 'loopback', direction = 'out', message_bytes = [1], window_bytes = [4096]", "s.message_bytes"),
        ("preset = 'loopback', direction = 'out', message_bytes = [64], window_bytes = [1]", "s.window_bytes"),
    ],
)
def test_a_faulty_sweep_is_reported_and_costs_no_preset(tmp_path: Path, sweep: str, key: str) -> None:
    """A sweep needs an existing preset, and valid messages and windows."""
    text = f"sweep = [{{ id = 's', name = 'S', {sweep} }}]\n" + HEAD + GOOD.format(id="mine-1")
    catalog = read(tmp_path, text)
    assert own(catalog) == ["mine-1"]
    assert [problem.key for problem in catalog.problems] == [key]
    assert [s.id for s in catalog.sweeps] == ["hp-figure-1"]


def test_an_mtu_without_room_for_payload_is_reported(tmp_path: Path) -> None:
    """A computed rate needs a packet with payload."""
    link = "{ framing = 'ethernet', line_rate_bit_s = 1, mtu_bytes = 68, duplex = 'full', timestamps = true }"
    text = f'computed = ["simplex"]\nid = "a"\nname = "A"\nfamily = "A"\nlink = {link}\n'
    assert read(tmp_path, HEAD + "[[preset]]\n" + text).problems == ()
    text = text.replace("68", "40")
    (problem,) = read(tmp_path, HEAD + "[[preset]]\n" + text).problems
    assert problem.key == "a.link.mtu_bytes"
