"""Wheel and sdist: what is inside, and that the installed command works."""

import email.policy
import json
import subprocess
import tarfile
import tomllib
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import linkgauge
import pytest
from packaging.metadata import Metadata

from .conftest import DEADLINE_S, ROOT, install, source_files

pytestmark = pytest.mark.timeout(200)  # an installation beside five other tests took over a minute
ROOMS = ("discovery", "engine", "mesh", "metrics", "observe", "presets", "tui", "watch")
CODE = ("__init__.py", "__main__.py", *ROOMS)


def metadata_of(wheel: Path) -> str:
    """Return the core metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def test_the_wheel_has_every_file_of_the_program(wheel: Path) -> None:
    """Modules, presets, style sheets, templates and schemas; and nothing of tests or benchmarks."""
    expected = {f"linkgauge/{path}" for path in source_files() if path.parts[0] in CODE}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("linkgauge/")}
    assert names == expected


def test_the_wheel_installs_pages_and_completions_where_systems_look(wheel: Path) -> None:
    """Below share of the environment's prefix."""
    with zipfile.ZipFile(wheel) as archive:
        shared = {name.partition(".data/data/")[2] for name in archive.namelist() if ".data/data/" in name}
    pages = {f"share/man/man1/{path.name}" for path in (ROOT / "packaging/man").iterdir()}
    assert shared == pages | {
        "share/bash-completion/completions/linkgauge",
        "share/zsh/site-functions/_linkgauge",
        "share/fish/vendor_completions.d/linkgauge.fish",
    }


def test_the_metadata_is_valid_and_complete(wheel: Path) -> None:
    """As a package index checks it."""
    text = metadata_of(wheel)
    metadata = Metadata.from_email(text, validate=True)
    message = email.message_from_string(text, EmailMessage, policy=email.policy.default)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (metadata.name, str(metadata.version)) == ("linkgauge", linkgauge.__version__)
    assert metadata.summary == project["description"]
    assert message["Description-Content-Type"] == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    extras = [each for dependencies in project["optional-dependencies"].values() for each in dependencies]
    assert {each.name for each in metadata.requires_dist or ()} == {
        dependency.split(">")[0] for dependency in (*project["dependencies"], *extras)
    }


def test_the_sdist_has_what_packagers_need(sdist: Path) -> None:
    """Documents, tests, locks and the files of the service, too."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    unwanted = {".ci", ".github", ".gitignore", "screenshots"}
    wanted = {str(path) for path in source_files() if path.parts[0] not in unwanted}
    assert wanted <= names
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.every(group="release")
@pytest.mark.parametrize("package", ["wheel", "sdist"])
def test_an_installed_package_measures(request: pytest.FixtureRequest, tmp_path: Path, package: str) -> None:
    """The command is there; an endpoint and a check of it work, each in a process of its own."""
    if package == "wheel":
        installed = request.getfixturevalue("installed")
    else:
        installed = install(tmp_path / "prefix", request.getfixturevalue("sdist"))
    settings: dict[str, Any] = {"env": installed.environment(tmp_path), "cwd": tmp_path, "text": True}
    version = subprocess.run([installed.program, "--version"], capture_output=True, check=True, **settings)
    assert version.stdout == f"linkgauge {linkgauge.__version__}\n"
    command = [installed.program, "endpoint", "--bind", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **settings) as endpoint:
        try:
            assert endpoint.stdout is not None
            address = endpoint.stdout.readline().split()[-1]
            options = ("--seconds", "0.5", "--warmup", "0", "--json")
            check = subprocess.run(
                [installed.program, "check", "10mb-fd", address, *options],
                capture_output=True,
                check=False,
                timeout=DEADLINE_S,
                **settings,
            )
        finally:
            endpoint.terminate()
    assert check.returncode == 0, check.stderr
    assert json.loads(check.stdout)["measured"]["total"]["bytes"] > 0
    inside = subprocess.run(
        [installed.prefix / "bin" / "python", "-c", "import linkgauge; print(linkgauge.__file__)"],
        capture_output=True,
        check=True,
        **settings,
    )
    assert Path(inside.stdout).is_relative_to(installed.prefix)
