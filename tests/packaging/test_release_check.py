"""What `make release-check` finds wrong with a version, and that it looks at this tree."""

import runpy
import subprocess
import sys
from typing import Any

import pytest

from .conftest import DEADLINE_S, ROOT

CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "packaging" / "release_check.py"))
CHANGELOG = "# Changelog\n\n## [1.2.3] - 2026-01-31\n### Added\n- A thing.\n\n## [1.2.2] - 2026-01-01\n"


@pytest.mark.parametrize(
    ("version", "changelog", "tags", "problem"),
    [
        ("1.2.3", CHANGELOG, [], None),
        ("1.2.3", CHANGELOG, ["v1.2.3"], None),
        ("1.2.3", CHANGELOG, ["1.2.3"], "the tag 1.2.3 is not v1.2.3"),
        ("1.2.4", CHANGELOG, [], "begins with 1.2.3"),
        ("1.2.3", "## Unreleased\n- A thing.\n", [], "begins with Unreleased"),
        ("1.2.3", "## [1.2.3]\n", [], "no date"),
        ("1.2.3", "", [], "begins with nothing"),
        ("1.2", "## [1.2] - 2026-01-31\n", [], "not of the form 1.2.3"),
    ],
)
def test_version_changelog_and_tag_have_to_agree(
    version: str, changelog: str, tags: list[str], problem: str | None
) -> None:
    """The first heading of the changelog is the version to release, with its date."""
    problems = list(CHECK["problems_of_version"](version, changelog, tags))
    assert len(problems) == (problem is not None)
    assert problem is None or problem in problems[0]


def test_the_check_of_this_tree_names_every_problem() -> None:
    """Each check is listed, and the exit status is 1 exactly where one fails."""
    command = [sys.executable, "packaging/release_check.py", "--skip-tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.stderr == ""
    marks = [line.split(" ", 1) for line in done.stdout.splitlines() if line[0] in "✓✗"]
    assert [name for _, name in marks] == ["version", "tree", "command files"]
    assert done.returncode == any(mark == "✗" for mark, _ in marks)
