"""The catalog: files of presets that are read, their faults by key, and presets looked up by id."""

import os
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import LinkgaugeError, UnknownPreset
from linkgauge.presets.catalog import Catalog, load_catalog

HEAD = '[source]\nid = "mine"\ntitle = "my notes"\n'
GOOD = '[[preset]]\nid = "{id}"\nname = "Mine"\nfamily = "Ethernet"\nlink = {{ framing = "ethernet" }}\n'
RATED = """
tables = [{ table = "1", columns = ["a_mbit_s", "a_mib_s", "cpu_percent"], rows = [
  { row = "x", values = [948, 113.0, 12.5] }, { row = "y", values = [94, 11.2, 0] } ] }]
"""


def read(directory: Path, text: str, name: str = "mine.toml") -> Catalog:
    """Load the catalogue with one file of the person's own beside it."""
    (directory / name).write_text(text, encoding="utf-8")
    return load_catalog([directory])


def own(catalog: Catalog) -> list[str]:
    """Return the ids of the person's own presets."""
    return [p.id for p in catalog.presets if p.source.id == "mine"]


def test_the_shipped_presets_have_no_problem() -> None:
    """What is shipped is clean."""
    assert load_catalog().problems == ()


def test_presets_of_the_user_join_the_shipped_ones(tmp_path: Path) -> None:
    """The same schema, in a directory of one's own."""
    catalog = read(tmp_path, HEAD + GOOD.format(id="mine-1"))
    assert catalog.problems == ()
    assert catalog.find("mine-1").name == "Mine"
    assert catalog.find("gbe-fd-1500").family == "Ethernet"


def test_a_directory_that_does_not_exist_has_no_presets_and_no_problem(tmp_path: Path) -> None:
    """Most people have none of their own."""
    assert load_catalog([tmp_path / "none"]) == load_catalog()


def test_files_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    """A directory may hold a README."""
    assert read(tmp_path, "not TOML", "README.md") == load_catalog()


def test_a_file_in_another_encoding_is_reported(tmp_path: Path) -> None:
    """Text of another encoding cannot be guessed."""
    (tmp_path / "mine.toml").write_bytes(b'name = "\xff"')
    assert [p.expected for p in load_catalog([tmp_path]).problems] == ["expected UTF-8 text"]


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    """A directory by the name of a file, a link to nowhere, a pipe, a directory that is a file."""
    (tmp_path / "a.toml").mkdir()
    (tmp_path / "b.toml").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "c.toml")
    (tmp_path / "d").write_text("")
    problems = load_catalog([tmp_path, tmp_path / "d"]).problems
    assert [(Path(p.path).name, p.expected) for p in problems] == [
        ("a.toml", "expected a regular file"),
        ("b.toml", "cannot be read: No such file or directory"),
        ("c.toml", "expected a regular file"),
        ("d", "cannot be read: Not a directory"),
    ]


def test_a_number_of_too_many_digits_is_reported(tmp_path: Path) -> None:
    """Python refuses to convert it, and not as a TOML error."""
    (problem,) = read(tmp_path, HEAD + "x = " + "1" * 5000).problems
    assert problem.expected == "expected TOML"


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A log that was named .toml by mistake does not eat the memory."""
    with (tmp_path / "mine.toml").open("wb") as handle:
        handle.truncate(5_000_000)
    assert "at most" in load_catalog([tmp_path]).problems[0].expected


def test_the_first_of_two_presets_with_the_same_id_counts(tmp_path: Path) -> None:
    """In one file, and against linkgauge's own."""
    text = HEAD + GOOD.format(id="mine-1") * 2 + GOOD.format(id="gbe-fd-1500")
    catalog = read(tmp_path, text)
    assert own(catalog) == ["mine-1"]
    assert catalog.find("gbe-fd-1500").source.id == "aix"
    assert [p.key for p in catalog.problems] == ["mine-1", "gbe-fd-1500"]
    assert "mine.toml already has this one" in catalog.problems[0].expected
    assert "aix.toml already has this one" in catalog.problems[1].expected


def test_control_characters_of_a_file_never_reach_the_terminal(tmp_path: Path) -> None:
    """A name from elsewhere must not drive the screen."""
    catalog = read(tmp_path, HEAD + GOOD.format(id="mine-1").replace("Mine", "a\\u001b[2Jb"))
    assert catalog.find("mine-1").name == "a\N{REPLACEMENT CHARACTER}[2Jb"


@pytest.mark.parametrize(
    ("unknown_id", "nearest"),
    [
        ("gbe-fd-150", "gbe-fd-1500"),
        ("GBE-FD-1500", "gbe-fd-1500"),
        ("10gbe-fd-15000", "10gbe-fd-1500"),
        ("loopbak", "loopback"),
        ("10g", "10gbe-fd-1500"),
        ("gigabit", "gbe-fd-1500"),
        ("wireguard", "1gbe-wireguard-1420"),
        ("atm155", "atm155-1500"),
    ],
)
def test_the_error_for_an_unknown_preset_names_similar_ones(unknown_id: str, nearest: str) -> None:
    """A slip of the finger gets the right name."""
    with pytest.raises(UnknownPreset, match="did you mean") as caught:
        load_catalog().find(unknown_id)
    assert nearest in caught.value.nearest
    assert isinstance(caught.value, LinkgaugeError)


def test_the_error_for_an_unknown_preset_without_similar_ones_names_the_list() -> None:
    """No guess is better than a wild one."""
    with pytest.raises(UnknownPreset, match="presets list"):
        load_catalog().find("zzzzzzzz")


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
        (RATED.replace("948", "1e300") + "rates = [{ flow = 'out', table = '1', column = 'a_mbit_s', row = 'x' }]",
         "mine-1.rates[1]", "up to 1e+15 bit/s"),
        ("computed = ['simplex']", "mine-1.computed", "a full duplex link with framing, line_rate_bit_s and mtu"),
    ],
)  # fmt: skip
def test_a_faulty_preset_is_reported_by_key_and_costs_only_itself(
    tmp_path: Path, change: str, key: str, expected: str
) -> None:
    """The file, the key and what was expected; the presets around it are had."""
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
    """A preset is named by its id, or by its place where the id is no use."""
    preset_id = "mine-1" if key.startswith("mine") else "No Id"
    text = f'[[preset]]\nid = "{preset_id}"\nname = "Mine"\nfamily = "Ethernet"\nlink = {link}\n'
    (problem,) = read(tmp_path, HEAD + text).problems
    assert problem.key == key


@pytest.mark.parametrize("preset_id", ["", "Mine", "a b", "a/b", "-a", "a--b", "auto", "é", "a" * 65, "a\\u0007"])
def test_an_id_unfit_for_the_command_line_is_refused(tmp_path: Path, preset_id: str) -> None:
    """Ids are typed on a command line and stand in CSV."""
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
    """A sweep is of a preset that is there, of messages and windows that can be."""
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


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("[[preset", "", "expected TOML; the error is at end of file"),
        ("[[preset]]\nid = 1 2", "", "expected TOML; the error is at line 2, column 8"),
        ("", "source", "expected an object"),
        (HEAD, "preset", "expected one [[preset]] or more"),
        (HEAD + "preset = 3", "source.preset", "expected one of"),
        ("preset = 3\n" + HEAD, "preset", "expected one [[preset]] or more"),
        ("preset = [3]\n" + HEAD, "preset 1", "expected a table"),
        ('[source]\nid = "x"\n' + GOOD.format(id="mine-1"), "source", "title"),
        ('[source]\nid = "x"\ntitle = 3\n' + GOOD.format(id="mine-1"), "source.title", "expected text"),
    ],
)
def test_a_faulty_file_is_reported_and_costs_no_other(tmp_path: Path, text: str, key: str, expected: str) -> None:
    """Linkgauge's presets and the person's other files are there all the same."""
    (tmp_path / "other.toml").write_text(HEAD + GOOD.format(id="other"), encoding="utf-8")
    catalog = read(tmp_path, text)
    assert own(catalog) == ["other"]
    (problem,) = catalog.problems
    assert problem.key == key
    assert expected in problem.expected


def test_an_unknown_key_at_the_top_is_reported_and_costs_no_preset(tmp_path: Path) -> None:
    """A misspelt key costs nothing but itself."""
    catalog = read(tmp_path, "presets = 1\n" + HEAD + GOOD.format(id="mine-1"))
    assert own(catalog) == ["mine-1"]
    assert [p.key for p in catalog.problems] == ["presets"]
