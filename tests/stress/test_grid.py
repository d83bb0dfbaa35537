"""The grid of causes: every family on emulated links, and how its findings are judged."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GRID = (sys.executable, "stress/grid.py")


@pytest.mark.every
@pytest.mark.alone
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "drawn", ["--seed=100 --cases=40", "--seed=100 --cases=30 --makers=wire-on,wire-gso1,router,routed,one-host"]
)
def test_links_with_a_known_cause_are_explained_by_it(drawn: str) -> None:
    """Of every family. What is missed is measured once more: another load of the machine is a cause, too."""
    command = [*GRID, "--seed", "100", *drawn.split(), "--jobs", "3", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=460)
    if "no lab: " in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-4_000:]
    assert "first finding right: " in done.stdout.splitlines()[-1]


def _regrade(
    folder: Path, case: dict[str, Any], evidence: Any, count: int = 20
) -> "subprocess.CompletedProcess[str]":
    """Judge the same evidence as that of so many cases."""
    folder.mkdir()
    for number in range(count):
        stored = {"case": {"number": number, **case}, "evidence": evidence}
        (folder / f"{number:04}.json").write_text(json.dumps(stored), encoding="utf-8")
    command = [*GRID, "--regrade", str(folder), "--check", "--record", str(folder / "recorded"), "--right", "3"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.every
def test_the_check_of_the_grid_fails_for_misses_and_records_them(tmp_path: Path) -> None:
    """The same evidence as that of the right cause, of a wrong one, and of a machine whose time was stolen."""
    scenario = ROOT / "tests/presets/diagnosis/scenarios/path-slow.toml"
    evidence = tomllib.loads(scenario.read_text(encoding="utf-8"))["evidence"]
    right = _regrade(tmp_path / "right", {"family": "slow", "wanted": ["path-slow"]}, evidence)
    assert right.returncode == 0, right.stderr
    assert "said with 0.8 or more: 20 of 20 right, 100 %, while 85 % were claimed" in right.stdout
    assert right.stdout.endswith("first finding right: 20 of 20, 100.0 %\n")
    assert len((tmp_path / "right/recorded/slow.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    wrong = _regrade(tmp_path / "wrong", {"family": "loss", "wanted": ["loss"]}, evidence)
    assert wrong.returncode == 1
    assert "wrong with a confidence of 0.7 or more" in wrong.stderr
    recorded = (tmp_path / "wrong/recorded/loss.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["wanted"] for line in recorded] == [["loss"]] * 20
    evidence["near"]["cores"][0]["steal"] = 0.06
    void = _regrade(tmp_path / "void", {"family": "loss", "wanted": ["loss"]}, evidence)
    assert (void.returncode, void.stderr) == (1, "no case counts\n")
