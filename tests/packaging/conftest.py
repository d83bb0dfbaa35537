"""The packages that a release consists of, built and installed as a user would, without the network."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DEADLINE_S = 150.0
REPOSITORY = "https://git.example/linkgauge"
MODULE = (sys.executable, "-m", "linkgauge")
_BUILD_WHEEL = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def source_files() -> list[Path]:
    """Return the files of the repository, from which `make dist` builds; skip the test if this is not one."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("git and a clone of the repository are needed")
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return [Path(name) for name in listed.stdout.split("\0") if name]


def make_dist(folder: Path, umask: int = 0o022) -> Path:
    """Carry out what `make dist` does; return the folder with the files."""
    command = [sys.executable, "packaging/dist.py", "--repository", REPOSITORY, str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, umask=umask, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    return folder


@dataclass(frozen=True)
class Installed:
    """An environment of its own with linkgauge and nothing else installed; its dependencies are the tests'."""

    prefix: Path

    @property
    def program(self) -> Path:
        """The `linkgauge` command."""
        return self.prefix / "bin" / "linkgauge"

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment of a user who has activated it."""
        environment_ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "COLUMNS"}}
        path = f"{self.prefix / 'bin'}:/usr/bin:/bin"
        return {**environment_, "PATH": path, "HOME": str(home), "LINKGAUGE_DATA_DIR": str(home / "data")}


@dataclass(frozen=True)
class Remote:
    """Runs of this tree against an endpoint of a package, with nothing of the user's environment."""

    home: Path

    def measure(self, command: Sequence[str], *runs: Sequence[str]) -> None:
        """Start an endpoint, test against it with the options of each run, and end it by Ctrl-C."""
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        command = [*command, "--bind", "127.0.0.1", "--port", "0"]
        with subprocess.Popen(
            command, cwd=self.home, env=environment, stdout=subprocess.PIPE, text=True
        ) as endpoint:
            try:
                assert endpoint.stdout is not None
                line = endpoint.stdout.readline()
                address = line.split()[-1]
                if line.startswith("{"):  # a service's first line, for the journal
                    listening = json.loads(line)["listening"]
                    address = f"{listening['host']}:{listening['port']}"
                for options in runs:
                    run = subprocess.run(
                        [*MODULE, "run", address, *options, "--seconds", "0.5", "--warmup", "0", "--json"],
                        cwd=self.home, env=environment, capture_output=True, text=True, check=False,
                        timeout=DEADLINE_S,
                    )  # fmt: skip
                    assert run.returncode == 0, run.stderr
                    assert json.loads(run.stdout)["measured"]["total"]["seconds"] > 0
            finally:
                endpoint.send_signal(signal.SIGINT)
        assert endpoint.returncode == 0


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """Give runs with a home of their own."""
    home = tmp_path / "home"
    home.mkdir()
    return Remote(home)


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first of several test processes has filled, while the others wait."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, whole = root / name, root / f"{name} is whole"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that `make dist` fills."""
    source_files()  # or skip
    return make_once(tmp_path_factory, "dist", make_dist)


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    """Give the sdist."""
    (path,) = dist.glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the wheel, built from the sdist."""

    def make(folder: Path) -> None:
        shutil.unpack_archive(sdist, folder / "source", filter="data")
        source = folder / "source" / sdist.name.removesuffix(".tar.gz")
        command = [sys.executable, "-c", _BUILD_WHEEL, str(folder)]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr

    (path,) = make_once(tmp_path_factory, "wheel", make).glob("*.whl")
    return path


def link_dependencies(site_packages: Path, extras: Collection[str]) -> None:
    """Give an environment what linkgauge and some of its extras need, as links to the packages of the tests."""
    waiting, known = [("linkgauge", frozenset({"", *extras}))], set[str]()
    while waiting:
        name, wanted = waiting.pop()
        requirements = map(Requirement, metadata.requires(name) or ())
        for each in requirements:
            is_needed = each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in wanted)
            if not is_needed or each.name in known:
                continue
            known.add(each.name)
            waiting.append((each.name, frozenset({"", *each.extras})))
            installed = metadata.distribution(each.name)
            for top in {path.parts[0] for path in installed.files or ()} - {"..", "__pycache__"}:
                with suppress(FileExistsError):
                    (site_packages / top).symlink_to(Path(str(installed.locate_file(top))))


def install(prefix: Path, package: Path, extras: Collection[str] | None = None) -> Installed:
    """Install a package into a fresh environment, beside all packages of the tests or those of some extras."""
    venv.create(prefix)
    site_packages = next(prefix.glob("lib/python*/site-packages"))
    if extras is None:
        # The editable install of the tests' environment hangs on a .pth file, which does not count here.
        (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    else:
        link_dependencies(site_packages, extras)
    command = [sys.executable, "-m", "pip", "--python", str(prefix), "install", "--quiet", "--no-compile"]
    command += ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return Installed(prefix)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Give an environment with the wheel installed."""
    return Installed(make_once(tmp_path_factory, "environment", lambda prefix: install(prefix, wheel)))
