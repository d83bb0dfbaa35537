"""The endpoint in one file: the same bytes each time, and a remote end with the standard library alone."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import DEADLINE_S, MODULE, ROOT, Remote, make_once

BASE_PYTHON = f"{sys.base_prefix}/bin/python3"
BUILDER = ROOT / "packaging" / "endpoint_archive.py"


def build(folder: Path) -> Path:
    """Build the file."""
    path = folder / "linkgauge-endpoint.pyz"
    subprocess.run([sys.executable, BUILDER, path], check=True, timeout=DEADLINE_S)
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file."""
    (path,) = make_once(tmp_path_factory, "archive", build).iterdir()
    return path


def interpreters() -> Iterator[str]:
    """Yield the interpreters of this machine that can run it, none of which has packages of ours."""
    yield BASE_PYTHON
    named = filter(None, (shutil.which(f"python3.{minor}") for minor in (12, 13, 14)))
    yield from (path for path in named if "shims" not in path)  # of pyenv, which may have no such version


@pytest.mark.every
def test_the_same_sources_make_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    """Whoever builds it can compare its checksum."""
    assert build(tmp_path).read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("python", interpreters())
def test_it_serves_every_workload_without_any_package(archive: Path, remote: Remote, python: str) -> None:
    """Its worker processes find their modules in the same file, from any directory."""
    workloads = (("stream",), ("rr",), ("crr",), ("udp", "--rate", "10M"))
    remote.measure([python, str(archive)], *(("--workload", *words) for words in workloads))


@pytest.mark.every
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--port", "70000"), "--port"),
        (("--tls-cert", "c"), "give both"),
        (("--key-file", "nowhere"), "nowhere"),
    ],
)
def test_a_wrong_option_is_explained(archive: Path, options: tuple[str, ...], problem: str) -> None:
    """As by the command `linkgauge endpoint`, without a traceback."""
    command = [BASE_PYTHON, str(archive), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, "Traceback" in done.stderr, problem in done.stderr) == (2, False, True), done.stderr


@pytest.mark.every
def test_it_has_no_option_that_the_command_lacks(archive: Path) -> None:
    """A user who knows the one knows the other."""
    shown = subprocess.run([BASE_PYTHON, archive, "--help"], capture_output=True, check=True)
    command = subprocess.run([*MODULE, "endpoint", "--help-all"], capture_output=True, check=True)
    ours = {word.strip(b"[],") for word in shown.stdout.split() if word.strip(b"[],").startswith(b"--")}
    assert ours - {b"--version"} <= {word.strip(b",") for word in command.stdout.split()}


def test_an_older_python_is_told_so(archive: Path) -> None:
    """Not by a traceback."""
    named = filter(None, (shutil.which(f"python3.{minor}") for minor in (10, 9, 8)))
    python = next((path for path in named if "shims" not in path), None)
    if python is None:
        pytest.skip("no Python before 3.11 is installed")
    done = subprocess.run([python, archive], capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, "needs Python 3.11" in done.stderr) == (1, True)
