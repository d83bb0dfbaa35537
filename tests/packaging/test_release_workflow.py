"""The workflow that publishes a tagged release: what it calls, in which order, and with which versions."""

import re
import shlex
import subprocess
from typing import Any

import pytest

from .conftest import DEADLINE_S, ROOT

yaml: Any = pytest.importorskip("yaml")
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["release"]["steps"]


def test_only_a_tag_of_a_version_publishes() -> None:
    """YAML reads the key `on` as true."""
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}
    assert WORKFLOW["permissions"] == {"contents": "write"}


def test_every_action_is_pinned_to_a_version() -> None:
    """Not to a branch, nor to a tag that moves."""
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", name)] == []


def test_it_checks_makes_compares_and_publishes_in_this_order() -> None:
    """All files of the folder are published, SHA256SUMS among them."""
    commands = [step["run"] for step in STEPS if "run" in step]
    marks = ("make release-check", "make dist", "sha256sum --check SHA256SUMS", "gh release create")
    assert len(commands) == len(marks)
    assert all(mark in command for mark, command in zip(marks, commands, strict=True))
    assert shlex.split(commands[-1])[-1] == "dist/*"


def test_make_takes_the_address_that_the_workflow_gives() -> None:
    """As the shell of a step expands it."""
    (command,) = [step["run"] for step in STEPS if "make dist" in step.get("run", "")]
    environment = {"PATH": "/usr/bin:/bin", "GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/b"}
    shell = ["/usr/bin/env", "bash", "-c", command.replace("make ", "make --dry-run ", 1)]
    done = subprocess.run(
        shell, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    assert "packaging/dist.py --repository https://git.example/a/b" in done.stdout
