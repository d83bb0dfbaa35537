"""The packages that only some commands need: what they say without them, and that an extra brings all of them."""

import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .conftest import DEADLINE_S, ROOT, Installed, install, make_once

pytestmark = pytest.mark.timeout(200)
EXTRAS = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
)
COMMANDS = {
    "mesh": ("mesh", "db-01", "db-02"),
    "web": ("web",),
    "discover": ("discover",),
    "report": ("sweep", "loopback", "--report", "page.html"),
    "http": ("endpoint", "--http", "0", "--bind", "127.0.0.1"),
    "metrics": ("endpoint", "--metrics", "9820"),
    "iperf3": ("endpoint", "--iperf3", "--iperf3-users", "users", "--iperf3-key", "key", "--bind", "127.0.0.1"),
}
FEATURES = {
    "mesh": "linkgauge.mesh",
    "web": "linkgauge.tui.cli.web",
    "discover": "linkgauge.discovery",
    "report": "linkgauge.tui.report",
    "http": "linkgauge.tui.endpoint.browser",
    "nq": "linkgauge.tui.endpoint.nq",
    "metrics": "linkgauge.metrics",
    "iperf3": "linkgauge.engine.iperf3",
}
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(each.name)
"""


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Give an environment with linkgauge and what it always needs."""
    return Installed(make_once(tmp_path_factory, "bare", lambda prefix: install(prefix, wheel, extras=())))


def carry_out(command: list[Any], installed: Installed, home: Path) -> subprocess.CompletedProcess[str]:
    """Carry a command out as the user of an environment."""
    return subprocess.run(
        command, cwd=home, env=installed.environment(home), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip


@pytest.mark.every
@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_without_its_packages_prints_the_command_that_installs_them(
    bare: Installed, wheel: Path, tmp_path: Path, extra: str
) -> None:
    """For this copy: with the Python that runs it, and from where it was installed.

    Without `nq` no command fails: clients are told what is missing (tests/tui/endpoint/nq/test_nq_service.py).
    """
    for name in ("users", "key"):
        (tmp_path / name).write_text("mario,5db5c3d19d0fdbd7ffb0bdbba0d1d8c5ac0d56c3b0b0c4e9a8c1e4d2f0a1b2c3\n")
        (tmp_path / name).chmod(0o600)
    done = carry_out([bare.program, *COMMANDS[extra]], bare, tmp_path)
    assert done.returncode in {2, 3}, done
    remedy = done.stderr.strip().rpartition(": ")[2]
    python, *words = shlex.split(remedy)
    assert Path(python).parent == bare.prefix / "bin", done.stderr
    assert words == ["-m", "pip", "install", f"{wheel}[{extra}]"]
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("extra", [pytest.param(each, marks=pytest.mark.every) for each in EXTRAS])
def test_an_extra_brings_every_package_that_its_feature_imports(wheel: Path, tmp_path: Path, extra: str) -> None:
    """And nothing is missing that only the tests' own environment has."""
    installed = install(tmp_path / "prefix", wheel, extras=(extra,))
    python = installed.prefix / "bin" / "python"
    done = carry_out([python, "-P", "-c", IMPORT_ALL, FEATURES[extra]], installed, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_page_names_every_extra() -> None:
    """With the commands that need it."""
    install_section = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install")[2].partition("\n## ")[0]
    )
    assert [each for each in EXTRAS if f"`{each}`" not in install_section] == []
