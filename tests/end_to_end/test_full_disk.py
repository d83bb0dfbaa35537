"""Files of a user on a disk without room: the sentence says so, and nothing half made stays."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..command_line import RATE_LIMIT, carry_out

# A run log that was saved while there was room; the commands find none.
FILLED = """
set -e
mount -t tmpfs -o size=400k none "$1"
cp -r "$2"/. "$1"
cat /dev/zero > "$1/fill" 2> "$1/../why" || grep -q "No space" "$1/../why"
shift 2
exec "$@"
"""
pytestmark = pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare mounts a small file system")


def on_full_disk(linkgauge: Any, folder: Path, saved: Path, *words: str) -> tuple[int, str, list[str]]:
    """Carry a command out with its folders on a full disk; return its status, its errors and the files there."""
    disk = folder / "disk"
    disk.mkdir()
    own = {f"LINKGAUGE_{name}_DIR": str(disk / name.lower()) for name in ("DATA", "CONFIG", "CACHE")}
    script = '"$@"; status=$?; find "$DISK" -type f -printf "%P\\n"; exit $status'
    command = (sys.executable, "-P", "-m", "linkgauge", *(word.replace("DISK", str(disk)) for word in words))
    done = subprocess.run(
        [
            "/usr/bin/env",
            "unshare",
            "-rm",
            "sh",
            "-c",
            FILLED,
            "sh",
            str(disk),
            str(saved),
            "sh",
            "-c",
            script,
            "sh",
            *command,
        ],
        capture_output=True,
        text=True,
        env=linkgauge.environment | own | {"DISK": str(disk)},
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr, sorted(done.stdout.splitlines()[-8:])


def save_run(linkgauge: Any, folder: Path) -> Path:
    """Carry out and save a run; return the folder with the data directory."""
    saved = folder / "saved"
    (saved / "data").mkdir(parents=True)
    own = {"LINKGAUGE_DATA_DIR": str(saved / "data")}
    made = carry_out(["run", "loopback", "--seconds", "1", *RATE_LIMIT], linkgauge.environment | own)
    assert made.status == 0, made
    return saved


@pytest.mark.parametrize("words", [("--key-file", "DISK/keys"), ()], ids=["named", "own"])
def test_a_key_that_cannot_be_saved_leaves_no_file(linkgauge: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    """An endpoint would refuse an empty one."""
    saved = tmp_path / "saved"
    (saved / "config").mkdir(parents=True)
    status, said, files = on_full_disk(linkgauge, tmp_path, saved, "endpoint", "key", "add", "laptop", *words)
    assert status == 2
    assert "cannot be changed: no space left on device" in said
    assert files == ["fill"]


@pytest.mark.parametrize(
    "words",
    [
        ("report", "last", "--html", "DISK/page.html"),
        *(
            pytest.param(words, marks=pytest.mark.every)
            for words in (
                ("label", "last", "x"),
                ("export", "last", "--csv", "DISK/r"),
            )
        ),
    ],
    ids=lambda words: words[0],
)
def test_saved_runs_on_a_full_disk_name_it_and_nothing_half_made_stays(
    linkgauge: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """SQLite needs room to open a file that it writes, and calls the lack a failure of the disk."""
    saved = save_run(linkgauge, tmp_path)
    status, said, files = on_full_disk(linkgauge, tmp_path, saved, "runs", *words)
    assert status in {2, 3}, said
    assert "the disk is full; free space on it" in said or "no space left on device" in said
    assert "disk failed" not in said
    assert not [name for name in files if "page" in name or name == "r"]


@pytest.mark.parametrize(
    "words", [("show", "last"), pytest.param(("list",), marks=pytest.mark.every)], ids=lambda words: words[0]
)
def test_saved_runs_on_a_full_disk_are_shown(linkgauge: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    """SQLite asks for room to read as well, unless it is told that nobody writes."""
    status, said, _ = on_full_disk(linkgauge, tmp_path, save_run(linkgauge, tmp_path), "runs", *words)
    assert status == 0, said
    assert "full" not in said.replace(str(tmp_path), "")


@pytest.mark.parametrize(
    "words",
    [
        ("export", "last", "--csv"),
        *(
            pytest.param(words, marks=pytest.mark.every)
            for words in (("export", "all", "--rows", "runs", "--csv"), ("report", "last", "--html"))
        ),
    ],
    ids=["rows", "runs", "page"],
)
def test_an_export_to_a_full_disk_leaves_the_earlier_file_whole(
    linkgauge: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The log is on another disk. The earlier file's own room is not enough for the new one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = linkgauge("run", "loopback", "--seconds", "1", "--interval", "50ms", *RATE_LIMIT)
    assert made.status == 0, made
    script = """
        mount -t tmpfs -o size=16k none "$1"; echo earlier > "$1/x.html"
        head -c 4000 /dev/zero > "$1/fill"; head -c 4000 /dev/zero > "$1/fill2"; cat /dev/zero > "$1/fill3"
        shift; "$@"; status=$?; ls -A "$DISK"; cat "$DISK/x.html"; exit $status
    """
    command = (sys.executable, "-P", "-m", "linkgauge", "runs", *words, str(disk / "x.html"), "--force")
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "-rm", "sh", "-c", script, "sh", str(disk), *command],
        capture_output=True,
        text=True,
        env=linkgauge.environment | {"DISK": str(disk)},
        timeout=60,
        check=False,
    )
    assert done.returncode in {2, 3}, done  # the file cannot be begun, or not completed
    assert "no space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["fill", "fill2", "fill3", "x.html", "earlier"]


def test_an_endpoint_whose_new_key_has_no_room_says_so(linkgauge: Any, tmp_path: Path) -> None:
    """Its key would be in no file: nobody could use it."""
    saved = tmp_path / "saved"
    saved.mkdir()
    status, said, files = on_full_disk(linkgauge, tmp_path, saved, "endpoint", "--port", "0")
    assert status == 3, said
    assert f"the new key cannot be saved in {tmp_path}" in said
    assert ": no space left on device" in said
    assert not [name for name in files if name.endswith(".key")]


def test_a_csv_file_of_observe_that_has_no_room_leaves_no_empty_file(linkgauge: Any, tmp_path: Path) -> None:
    """It would need --force the next time."""
    saved = tmp_path / "saved"
    saved.mkdir()
    words = ("observe", "127.0.0.1", "--seconds", "1", "--csv", "DISK/rows.csv")
    status, said, files = on_full_disk(linkgauge, tmp_path, saved, *words)
    assert status == 3, said
    assert "rows.csv: no space left on device" in said
    assert "rows.csv" not in files
