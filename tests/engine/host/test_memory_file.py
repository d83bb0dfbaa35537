"""Files in memory, and the engine's archive, which a child inherits."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.host import memory_file
from linkgauge.engine.host.memory_file import InheritedBundle, create_memory_file, descriptor_path


@pytest.mark.parametrize("has_memfd", [True, False])
def test_a_memory_file_holds_its_bytes_and_is_not_inherited(
    monkeypatch: pytest.MonkeyPatch, has_memfd: bool
) -> None:
    """An unlinked temporary file does as well, if the system has no memfd_create."""
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create")
    fd = create_memory_file("linkgauge-test", b"some bytes")
    try:
        assert os.pread(fd, 100, 0) == b"some bytes"
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_the_path_of_a_descriptor_leads_to_the_file() -> None:
    """Python imports the engine from such a path."""
    fd = create_memory_file("linkgauge-test", b"some bytes")
    try:
        assert Path(descriptor_path(fd)).read_bytes() == b"some bytes"
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("arrived", "digest", "message"),
    [
        (b"half", hashlib.sha256(b"half of it").hexdigest(), "the engine did not arrive whole"),
        (b"spoilt!!!!", hashlib.sha256(b"half of it").hexdigest(), "the engine arrived damaged"),
    ],
)
def test_an_engine_that_did_not_arrive_whole_is_not_run(arrived: bytes, digest: str, message: str) -> None:
    """The module's source alone runs on the other host."""
    module = Path(memory_file.__file__).read_text(encoding="utf-8")
    source = f"{module}\nrun_bundle(10, {digest!r})\n"
    child = subprocess.run([sys.executable, "-c", source], input=arrived, capture_output=True, check=False)
    assert (child.returncode, child.stderr.decode().strip()) == (1, message)


def test_an_installed_program_hands_no_archive_to_its_children() -> None:
    """They find linkgauge where their parent did."""
    bundle = InheritedBundle()
    assert (bundle.fds, bundle.environment) == ((), None)
    bundle.close()


def test_a_program_in_memory_hands_its_archive_to_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a descriptor, and by the path that Python imports from."""

    class Loader:
        archive = "/proc/self/fd/7"

    monkeypatch.setattr(memory_file, "__loader__", Loader)
    monkeypatch.setattr(sys, "platform", "linux")
    bundle = InheritedBundle()
    assert bundle.fds == (7,)
    assert bundle.environment is not None
    assert bundle.environment["PYTHONPATH"] == "/proc/self/fd/7"
