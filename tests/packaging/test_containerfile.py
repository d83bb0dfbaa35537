"""The container image of the endpoint: its file is well formed, and where an engine is there, it works."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT

CONTAINERFILE = ROOT / "packaging" / "Containerfile"
INSTRUCTIONS = {"FROM", "COPY", "RUN", "LABEL", "USER", "ENV", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the file with their arguments, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def engine() -> str | None:
    """Return a container engine that works here."""
    for name in ("podman", "docker"):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    return None


def test_the_file_starts_an_endpoint_as_an_ordinary_user() -> None:
    """On the endpoint's port, with what the repository has; nothing is copied that is not there."""
    parsed = instructions()
    assert {name for name, _ in parsed} <= INSTRUCTIONS
    last = dict(parsed)
    assert json.loads(last["ENTRYPOINT"]) == ["linkgauge", "endpoint"]
    assert last["USER"] != "root"
    assert last["EXPOSE"] == "5820/tcp 5820/udp"
    stages = {argument.split(" AS ")[1] for name, argument in parsed if name == "FROM" and " AS " in argument}
    for name, argument in parsed:
        if name == "COPY" and not argument.startswith("--from="):
            assert (ROOT / argument.split()[0]).exists()
        elif name == "COPY":
            assert argument.split()[0].removeprefix("--from=") in stages


@pytest.mark.every
@pytest.mark.timeout(600)
def test_the_image_is_built_and_serves(sdist: Path, tmp_path: Path) -> None:
    """Its endpoint prints the version."""
    program = engine()
    if program is None:
        pytest.skip("podman, or docker with its daemon, is needed")
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    build = [program, "build", "-q", "-t", "linkgauge-test", "-f", "packaging/Containerfile", "."]
    subprocess.run(build, cwd=source, check=True, timeout=540)
    run = [program, "run", "--rm", "linkgauge-test", "--show-limits"]
    assert "clients" in subprocess.run(run, capture_output=True, check=True, text=True, timeout=60).stdout
