"""The bundle runs on its own, and has the modules of a far end and no more."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from linkgauge.engine.ssh.bundle import bootstrap_script, build_bundle

IMPORT = """
import sys
sys.path = [sys.argv[1]] + [path for path in sys.path if "site-packages" not in path]
import linkgauge.engine.ssh.remote_main, linkgauge.engine.workers.fork_server
assert linkgauge.__file__.startswith(sys.argv[1]), linkgauge.__file__
"""


def test_the_bundle_imports_with_nothing_but_the_standard_library(tmp_path: Path) -> None:
    """The far end's program and the fork server are all that is ever started from it."""
    archive = tmp_path / "engine.zip"
    archive.write_bytes(build_bundle())
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT, str(archive)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("package", ["engine/results", "engine/near", "engine/lab", "mesh", "presets", "tui"])
def test_packages_of_the_near_end_stay_there(package: str) -> None:
    """Each would make the start over a slow line longer."""
    names = zipfile.ZipFile(io.BytesIO(build_bundle())).namelist()
    assert "linkgauge/engine/far/endpoint.py" in names
    assert not [name for name in names if name.startswith(f"linkgauge/{package}/")]


def test_the_same_sources_make_the_same_bytes() -> None:
    """The digest in the first line of the bootstrap matches the bundle behind it."""
    first_line, _, rest = bootstrap_script().partition(b"\n")
    build_bundle.cache_clear()
    assert rest == build_bundle()
    assert f"run_bundle({len(rest)},".encode() in first_line
