"""Scripts that no test runs whole: each still finds the modules that it uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT)
    for folder in ("bench", "packaging", "screenshots", "stress")
    for path in (ROOT / folder).glob("*.py")
    if not path.name.startswith("test_") and "ArgumentParser(" in path.read_text(encoding="utf-8")
)


SHORT_RUNS = {
    "attacks": ("--only", "wrong_keys", "--seconds", "1", "--deadline", "60"),
    "fuzz": ("--inputs", "2000", "--jobs", "1", "--only", "conversation,coded frames,typed peer"),
    "watch_kills": ("--kills", "5", "--seed", "1"),
    "day": ("--hours", "0.1", "--only", "endpoint,app readings"),
}


@pytest.mark.every
@pytest.mark.timeout(240)
@pytest.mark.parametrize("script", SHORT_RUNS)
def test_a_short_run_of_a_stress_test_finds_nothing(script: str) -> None:
    """A long one is for a quiet machine."""
    command = [sys.executable, f"stress/{script}.py", *SHORT_RUNS[script]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "CLEAN" in done.stdout.splitlines()[-1]


@pytest.mark.every
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces and mounts")
@pytest.mark.timeout(240)
def test_a_short_soak_ends_with_its_report(tmp_path: Path) -> None:
    """With runs and faults that take a second each."""
    actions = ("plain_run", "abandoned_run", "garbage")
    command = [
        sys.executable,
        "stress/soak.py",
        "--minutes",
        "0.2",
        "--results",
        tmp_path,
        "--only",
        *actions,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert done.stdout.splitlines()[-1].endswith("CLEAN")
    assert (tmp_path / "soak.txt").read_text(encoding="utf-8") in done.stdout


@pytest.mark.every
@pytest.mark.timeout(240)
def test_every_table_of_costs_is_printed() -> None:
    """With few runs, presets and samples: what they cost is for a quiet machine."""
    command = [sys.executable, "bench/costs.py", "--short"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    tables = done.stdout.split("\n## ")[1:]
    assert [len(table.splitlines()) for table in tables] == [4, 5, 5, 5, 4, 5], done.stdout


@pytest.mark.every
@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_prints_its_help(script: Path) -> None:
    """The types of its imports are not checked: the repository root is the package, and has no name there."""
    done = subprocess.run(
        [sys.executable, script, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
