"""The Debian package of the endpoint: dpkg installs, runs, removes and purges it, in a root of its own."""

import gzip
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from .conftest import DEADLINE_S, Remote

PYTHON: Final = "/usr/bin/python3"  # Debian's
STATUS: Final = """Package: python3
Status: install ok installed
Maintainer: nobody
Architecture: all
Version: {version}
Description: the interpreter of this machine
"""
pytestmark = [
    pytest.mark.timeout(200),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is needed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="dpkg unpacks as root only"),
]


class DpkgRoot:
    """A folder with a database of dpkg that knows Python alone; this machine's database is not touched."""

    def __init__(self, folder: Path, python_version: str) -> None:
        self.folder = folder
        self.database = folder / "var/lib/dpkg"
        for name in ("info", "updates", "triggers"):
            (self.database / name).mkdir(parents=True)
        (self.database / "info/python3.list").touch()
        (self.database / "status").write_text(STATUS.format(version=python_version), encoding="ascii")

    def dpkg(self, *arguments: str) -> str:
        """Carry out dpkg for this root; return its warnings. Its usual configuration may exclude manual pages."""
        command = ["dpkg", f"--root={self.folder}", f"--log={self.database}/log", "--path-include=*"]
        command += ["--force-script-chrootless", "--force-unsafe-io", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def files(self) -> set[str]:
        """Return the paths of everything outside the database."""
        every = (path for path in self.folder.rglob("*") if not path.is_relative_to(self.folder / "var"))
        return {str(path.relative_to(self.folder)) for path in every}


@pytest.fixture
def package(dist: Path) -> Path:
    """Give the package."""
    (path,) = dist.glob("linkgauge-endpoint_*_all.deb")
    return path


@pytest.fixture
def root(tmp_path: Path) -> DpkgRoot:
    """Give an empty root."""
    if not Path(PYTHON).exists():
        pytest.skip(f"{PYTHON} is needed")
    version = subprocess.run([PYTHON, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if tuple(map(int, version.split(".")[:2])) < (3, 11):
        pytest.skip("Python 3.11 of the distribution is needed")
    return DpkgRoot(tmp_path / "root", version)


@pytest.mark.every
def test_it_is_installed_serves_and_is_purged_without_a_trace(
    package: Path, root: DpkgRoot, remote: Remote
) -> None:
    """The service's own command line serves; a removal keeps key and limits, a purge keeps nothing."""
    assert not root.dpkg("--install", str(package))
    key, limits = root.folder / "etc/linkgauge/key", root.folder / "etc/linkgauge/limits.toml"
    assert key.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"[0-9a-f]{48}\n", key.read_text(encoding="ascii"))
    assert not [name for name in root.files() if ".wants" in name], "a unit is enabled"
    unit = (root.folder / "usr/lib/systemd/system/linkgauge.service").read_text(encoding="ascii")
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    command = line.replace("%t/linkgauge.key", "/etc/linkgauge/key").replace(" /etc/", f" {root.folder}/etc/")
    remote.measure([f"{root.folder}{command.split()[0]}", *shlex.split(command)[1:]], ("--key-file", str(key)))

    limits.write_text("clients = 16\n", encoding="ascii")
    first_key = key.read_bytes()
    root.dpkg("--install", str(package))
    assert (key.read_bytes(), limits.read_text(encoding="ascii")) == (first_key, "clients = 16\n")
    assert not root.dpkg("--remove", "linkgauge-endpoint")
    assert root.files() == {"etc", "etc/linkgauge", "etc/linkgauge/key", "etc/linkgauge/limits.toml"}
    assert not root.dpkg("--purge", "linkgauge-endpoint")
    assert {name for name in root.files() if not (root.folder / name).is_dir()} == set()
    assert not key.parent.exists()


def test_another_file_of_the_folder_survives_a_purge(package: Path, root: DpkgRoot) -> None:
    """Such as that of a watch."""
    root.dpkg("--install", str(package))
    (root.folder / "etc/linkgauge/watch.toml").touch()
    root.dpkg("--purge", "linkgauge-endpoint")
    assert {name for name in root.files() if name.startswith("etc/linkgauge/")} == {"etc/linkgauge/watch.toml"}


def test_the_manual_page_has_the_options_of_the_program(package: Path, root: DpkgRoot) -> None:
    """Those of `linkgauge endpoint` that the one file lacks are left out."""
    root.dpkg("--install", str(package))
    page = gzip.decompress((root.folder / "usr/share/man/man1/linkgauge-endpoint.1.gz").read_bytes()).decode()
    described = re.findall(r"^\.TP\n\\fB.*?(--[a-z-]+)", page.replace(r"\-", "-"), re.MULTILINE)
    shown = subprocess.run(
        [root.folder / "usr/bin/linkgauge-endpoint", "--help"], capture_output=True, text=True, check=True
    )
    assert set(described) == set(re.findall(r"--[a-z-]+", shown.stdout)) - {"--help", "--version"}
    assert "linkgauge endpoint" not in page
