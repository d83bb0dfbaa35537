"""The files of `make dist`: the same bytes for one commit, and checksums of all of them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import DEADLINE_S, make_dist

pytestmark = pytest.mark.timeout(200)


@pytest.mark.every
def test_one_commit_makes_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """At another time, in another folder, by a user with another umask."""
    again = make_dist(tmp_path / "again", umask=0o077)
    assert (again / "SHA256SUMS").read_text(encoding="ascii") == (dist / "SHA256SUMS").read_text(encoding="ascii")


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is needed")
def test_the_checksums_are_those_of_every_file(dist: Path) -> None:
    """As the program that users call finds."""
    command = ["sha256sum", "--check", "SHA256SUMS"]
    done = subprocess.run(command, cwd=dist, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    names = {line.partition(": ")[0] for line in done.stdout.splitlines()}
    assert names == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
