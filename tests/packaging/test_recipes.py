"""The recipes of packagers that `make dist` fills in: Homebrew, Arch Linux and Nix."""

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import linkgauge
import pytest

from .conftest import DEADLINE_S, REPOSITORY, ROOT

pytestmark = pytest.mark.timeout(200)
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_a_recipe_fetches_the_sdist_of_this_release(dist: Path, sdist: Path) -> None:
    """With its version and checksum; it names no other address."""
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    for name in ("PKGBUILD", "linkgauge.rb", "linkgauge.nix"):
        text = (dist / name).read_text(encoding="utf-8")
        assert (linkgauge.__version__ in text, checksum in text) == (True, True), name
        assert not re.findall(r"@[A-Z0-9_]+@", text), name
        assert text.count("://") == text.count(REPOSITORY) > 0, name
        assert PROJECT["project"]["description"] in text, name


def test_a_recipe_depends_on_what_the_project_does(dist: Path) -> None:
    """Homebrew's takes the pinned versions of the sdist."""
    on_linux = [each for each in PROJECT["project"]["dependencies"] if "!= 'linux'" not in each]
    expected = {each.split(">")[0] for each in on_linux}
    (arch,) = re.findall(r"^depends=\((.*)\)$", (dist / "PKGBUILD").read_text(encoding="utf-8"), re.MULTILINE)
    assert {each.removeprefix("python-") for each in arch.split()} == {"python", *expected}
    (nix,) = re.findall(r" dependencies = [^\[]*\[([^\]]*)\]", (dist / "linkgauge.nix").read_text(encoding="utf-8"))
    assert set(nix.split()) == expected


def test_the_formula_links_every_folder_that_the_wheel_fills(dist: Path) -> None:
    """Pages and completions."""
    linked = re.findall(r'libexec/"(share/[^"]*)/', (dist / "linkgauge.rb").read_text(encoding="utf-8"))
    assert set(linked) == set(PROJECT["tool"]["setuptools"]["data-files"])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("PKGBUILD", ("bash", "-n")),
        ("linkgauge.rb", ("ruby", "-c")),
        ("linkgauge.nix", ("nix-instantiate", "--parse")),
    ],
)
def test_a_recipe_is_read_by_its_own_language(dist: Path, name: str, command: tuple[str, ...]) -> None:
    """As far as a machine without the package manager can tell."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is needed")
    done = subprocess.run([*command, dist / name], capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr


def test_the_build_file_of_arch_finds_its_source_by_its_version(dist: Path) -> None:
    """As makepkg evaluates it."""
    script = 'source "$1" && printf "%s\\n" "$pkgname" "$pkgver" "${source[@]}"'
    command = ["/usr/bin/env", "bash", "-c", script, "bash", str(dist / "PKGBUILD")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
    version = linkgauge.__version__
    url = f"{REPOSITORY}/releases/download/v{version}/linkgauge-{version}.tar.gz"
    assert shown.split() == ["linkgauge", version, url]
