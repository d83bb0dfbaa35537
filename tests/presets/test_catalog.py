"""The catalog: files of presets that are read, their faults by key, and presets looked up by id."""

import os
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import LinkgaugeError, UnknownPreset
from linkgauge.presets.catalog import listed_presets, load_catalog

from .preset_files import GOOD, HEAD, own, read


def test_the_shipped_presets_have_no_problem() -> None:
    """Linkgauge's own files have no faults."""
    assert load_catalog().problems == ()


def test_presets_of_the_user_join_the_shipped_ones(tmp_path: Path) -> None:
    """They have the same schema, in a directory of the user."""
    catalog = read(tmp_path, HEAD + GOOD.format(id="mine-1"))
    assert catalog.problems == ()
    assert catalog.find("mine-1").name == "Mine"
    assert catalog.find("gbe-fd-1500").family == "Ethernet"


def test_a_directory_that_does_not_exist_has_no_presets_and_no_problem(tmp_path: Path) -> None:
    """Most users have no presets of their own."""
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


def test_a_key_of_too_many_parts_is_reported(tmp_path: Path) -> None:
    """Python's parser would take hours for the file."""
    (problem,) = read(tmp_path, "x." * 1_000_000 + "x = 1").problems
    assert problem.expected == "expected TOML; the error is at line 1, column 1"


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
    """No guess is better than a wrong guess."""
    with pytest.raises(UnknownPreset, match="presets list"):
        load_catalog().find("zzzzzzzz")


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


def test_a_list_begins_with_modern_ethernet_and_ends_with_documents() -> None:
    """Each document has headings of its own, so that two presets of one kind of link are told apart."""
    presets = load_catalog().presets
    listed = listed_presets(presets)
    assert sorted(preset.id for below in listed.values() for preset in below) == sorted(each.id for each in presets)
    headings = list(listed)
    assert headings[0] == "Modern Ethernet"
    assert headings.index("Loopback") < headings.index("Ethernet: AIX adapter performance guidelines")
    assert "ATM: HP ATM adapter performance report" in headings
    assert all(len({preset.source for preset in below}) == 1 for below in listed.values())
    names = [(heading, preset.name) for heading, below in listed.items() for preset in below]
    assert len(set(names)) == len(names)
