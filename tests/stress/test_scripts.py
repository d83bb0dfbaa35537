"""Scripts that no test runs whole: each still finds the modules that it uses."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT)
    for folder in ("bench", "packaging", "screenshots", "tests/stress")
    for path in (ROOT / folder).glob("*.py")
    if not path.name.startswith("test_") and "ArgumentParser(" in path.read_text(encoding="utf-8")
)


@pytest.mark.every
@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_prints_its_help(script: Path) -> None:
    """The types of its imports are not checked: the repository root is the package, and has no name there."""
    done = subprocess.run(
        [sys.executable, script, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
