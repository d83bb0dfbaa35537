"""Whether this commit can be released: version, changelog, tag, tree, packages and documents.

Usage: make release-check, or .venv/bin/python packaging/release_check.py [--skip-tests]

Every check is made, and each that fails is printed with what to do; then the exit status is 1.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from linkgauge import __version__

ROOT: Final = Path(__file__).parents[1]
VERSION: Final = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
HEADING: Final = re.compile(
    r"^## (?:\[)?(?P<version>[^]\s]+)(?:\])?(?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE
)
TESTS: Final = ("tests/packaging", "tests/docs")


def problems_of_version(version: str, changelog: str, tags: list[str]) -> Iterator[str]:
    """Yield what is wrong with a version, given the text of the changelog and the tags of the commit."""
    if not VERSION.fullmatch(version):
        yield f"the version {version} is not of the form 1.2.3; see __init__.py"
    heading = HEADING.search(changelog)
    if heading is None or heading["version"] != version:
        first = "nothing" if heading is None else heading["version"]
        yield f"CHANGELOG.md begins with {first}; its first heading has to be ## [{version}] - YYYY-MM-DD"
    elif heading["date"] is None:
        yield f"CHANGELOG.md gives no date for {version}: ## [{version}] - YYYY-MM-DD"
    for tag in tags:
        if tag != f"v{version}":
            yield f"the tag {tag} is not v{version}"


def check_version() -> Iterator[str]:
    """Yield what is wrong with the version, the changelog and the tags of this commit."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    yield from problems_of_version(__version__, changelog, git("tag", "--points-at", "HEAD").split())


def check_tree() -> Iterator[str]:
    """Yield the files that are in no commit."""
    for line in git("status", "--porcelain").splitlines():
        yield f"commit or remove {line[3:]}"


def check_command_files() -> Iterator[str]:
    """Yield the manual pages and completions that are out of date."""
    done = _python("packaging/command_files.py", "--check")
    yield from done.stderr.splitlines()


def check_packages_and_documents() -> Iterator[str]:
    """Build, install and try the packages, check their metadata, and carry out every command of the documents."""
    done = _python("-m", "pytest", "-q", "-n", "0", "--every", *TESTS)
    if done.returncode:
        yield f"{' and '.join(TESTS)} fail:\n{done.stdout[-3000:]}"


def git(*arguments: str) -> str:
    """Return what a command of git prints about this clone."""
    command = ["/usr/bin/env", "git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False, capture_output=True, text=True)


def main() -> int:
    """Make every check and print the problems."""
    parser = argparse.ArgumentParser(description="Whether this commit can be released.")
    parser.add_argument("--skip-tests", action="store_true", help="check version, changelog, tree and pages only")
    options = parser.parse_args()
    checks: list[Callable[[], Iterator[str]]] = [check_version, check_tree, check_command_files]
    if not options.skip_tests:
        checks.append(check_packages_and_documents)
    has_failed = False
    for check in checks:
        problems = list(check())
        has_failed |= bool(problems)
        print(f"{'✗' if problems else '✓'} {check.__name__.removeprefix('check_').replace('_', ' ')}", flush=True)
        for problem in problems:
            print(f"    {problem}")
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
