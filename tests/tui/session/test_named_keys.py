"""The keys of a key file: which lines it may have, and two programs that change it at once."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.host.saved_files import claim_private_file
from linkgauge.engine.model.errors import InvalidKeyError
from linkgauge.engine.model.shared_key import MAX_KEYS
from linkgauge.tui.session.named_keys import (
    FORMER_NAME,
    add_key,
    read_key_file,
    read_key_lines,
    read_named_keys,
    remove_key,
)

KEYS = [f"a-key-of-this-test-{number}" for number in range(MAX_KEYS + 1)]
THREE = [("alice", KEYS[0]), ("alice", KEYS[1]), ("bob@7", KEYS[2])]


def write(path: Path, text: str) -> Path:
    """Write a file that only its owner may read."""
    path.touch(0o600)
    path.write_text(text)
    return path


def named(path: Path) -> list[tuple[str, str]]:
    """Return the names and keys of a file."""
    return [(key.name, key.reveal()) for key in read_named_keys(path)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{KEYS[0]}\n", [("", KEYS[0])]),
        (f"#{KEYS[0]}", [("", f"#{KEYS[0]}")]),
        (f"# for all\n{KEYS[0]}\n", [("", KEYS[0])]),
        (f"alice {KEYS[0]}", [("alice", KEYS[0])]),
        (f"alice {KEYS[0]} # old\n\nalice {KEYS[1]}\nbob@7 {KEYS[2]}\n", THREE),
    ],
    ids=[
        "alone",
        "alone like a comment",
        "alone behind a comment",
        "one with a name",
        "an old one and a new one",
    ],
)
def test_a_file_has_one_key_alone_or_a_line_for_each(tmp_path: Path, text: str, expected: list[object]) -> None:
    """Two of one name count at the same time."""
    path = write(tmp_path / "keys", text)
    assert named(path) == expected
    if len(expected) == 1:
        assert read_key_file(path).reveal() == named(path)[0][1]
    else:
        with pytest.raises(InvalidKeyError, match="has 3 keys, and a client proves one"):
            read_key_file(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no key; make one"),
        ("# nothing\n", "has no key; make one"),
        ("short", "16 to 1024"),
        (f"# one\nalice {KEYS[0]} and-more-words", "line 2: a line is NAME KEY"),
        (f"alice {KEYS[0]}\n{KEYS[1]}\n", "line 2: a line is NAME KEY"),
        (f"alice {KEYS[0]}\nbob short\n", "line 2: a key is 16 to 1024"),
        (f"-alice {KEYS[0]}\n", "line 1: a name of a key is 1 to 63 letters"),
        (f"alice {KEYS[0]}\nbob {KEYS[1]}\ncarol {KEYS[0]}\n", "line 3: it has the key of line 1 again"),
        ("".join(f"alice {key}\n" for key in KEYS), "has 65 keys; an endpoint tries 64 at most"),
    ],
)
def test_a_file_with_a_wrong_line_is_refused_by_its_number_and_no_word_of_it_is_repeated(
    tmp_path: Path, text: str, words: str
) -> None:
    """Which word of a line is the key, nobody knows."""
    path = write(tmp_path / "keys", text)
    with pytest.raises(InvalidKeyError, match=words) as caught:
        read_named_keys(path)
    assert not [word for word in text.split() if len(word) > 4 and word in str(caught.value)]


def test_keys_are_added_and_removed_in_one_step_and_comments_stay(tmp_path: Path) -> None:
    """The key that had no name so far gets one, so that both count; a name is given once."""
    path = write(tmp_path / "keys", f"# of the lab\n{KEYS[0]}\n")
    before = path.stat().st_ino
    key, has_named = add_key(path, "alice")
    assert has_named
    assert path.stat().st_ino != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert named(path) == [(FORMER_NAME, KEYS[0]), ("alice", key.reveal())]
    assert path.read_text().startswith("# of the lab\n")
    assert [bool(line.added) for line in read_key_lines(path)] == [False, False, True]
    for taken in ("alice", FORMER_NAME):
        with pytest.raises(InvalidKeyError, match=f"has a key of {taken} already"):
            add_key(path, taken)
    assert remove_key(path, FORMER_NAME) == 1
    with pytest.raises(InvalidKeyError, match="has no key of that name"):
        remove_key(path, FORMER_NAME)
    with pytest.raises(InvalidKeyError, match="no key left"):
        remove_key(path, "alice")
    assert named(path) == [("alice", key.reveal())]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_made_by_the_first_key_and_by_nothing_else(tmp_path: Path) -> None:
    """A link stays a link, and a full file takes no further key."""
    path = tmp_path / "keys"
    with pytest.raises(InvalidKeyError, match="no such file"):
        remove_key(path, "alice")
    with pytest.raises(InvalidKeyError, match="cannot be changed: no such file or directory"):
        add_key(tmp_path / "folder" / "keys", "alice")
    assert not list(tmp_path.iterdir())
    (tmp_path / "link").symlink_to(path)
    key, has_named = add_key(tmp_path / "link", "alice")
    assert (named(path), has_named) == ([("alice", key.reveal())], False)
    assert (tmp_path / "link").is_symlink()
    write(path, "".join(f"alice {key}\n" for key in KEYS[:MAX_KEYS]))
    with pytest.raises(InvalidKeyError, match="has 64 keys, and that is the most"):
        add_key(path, "bob")
    assert len(named(path)) == MAX_KEYS


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_pipe_or_device_is_no_key_file_and_stays(tmp_path: Path, mode: int) -> None:
    """Root's /dev/null was removed: it is as empty as a file that was just made."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(mode)
    with pytest.raises(InvalidKeyError, match="is a device or a pipe: name a file"):
        add_key(pipe, "laptop")
    assert pipe.is_fifo()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away as root")
def test_root_leaves_the_file_of_a_service_to_the_service(tmp_path: Path) -> None:
    """Otherwise the service could not read its keys again."""
    path = write(tmp_path / "keys", f"alice {KEYS[0]}\n")
    os.chown(path, 5820, 5821)
    add_key(path, "bob")
    assert (path.stat().st_uid, path.stat().st_gid) == (5820, 5821)


def test_programs_that_add_keys_at_once_lose_none(tmp_path: Path) -> None:
    """Each waits until the others have written theirs."""
    path = tmp_path / "keys"
    program = (
        "import sys, pathlib; from linkgauge.tui.session.named_keys import add_key\n"
        "for number in range(8): add_key(pathlib.Path(sys.argv[1]), f'{sys.argv[2]}-{number}')"
    )
    lock = claim_private_file(path)
    assert lock is not None
    writers = [subprocess.Popen([sys.executable, "-P", "-c", program, path, name]) for name in ("a", "b", "c")]
    os.close(lock)
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert sorted(name for name, _ in named(path)) == [f"{name}-{number}" for name in "abc" for number in range(8)]
