"""Make the files of a release: packages for pip and Debian, the endpoint in one file, recipes, and checksums.

Usage: make dist, or .venv/bin/python packaging/dist.py [--repository URL] [FOLDER]

The recipes of packagers fetch the sdist from the releases of the repository at URL. The folder is new, empty, or
that of an earlier call, whose files are replaced. `sha256sum --check SHA256SUMS` checks the files. One commit makes
the same bytes each time.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Final

from debian_package import write_debian_package
from endpoint_archive import NAME, ROOT, write_archive
from python_packages import build_packages
from recipe_templates import FOLDER, write_recipes
from release_check import git

_SUMS: Final = "SHA256SUMS"
_REPOSITORY: Final = "https://linkgauge.example"  # a recipe needs some address; a release gives its own


def _remove_earlier_files(folder: Path) -> None:
    """Remove what an earlier call made; end if the folder has anything else, which may be a user's."""
    files = sorted(folder.iterdir())
    own = {_SUMS, *(path.name for path in FOLDER.iterdir())}
    if foreign := [path.name for path in files if not (path.name in own or path.match("linkgauge-*"))]:
        sys.exit(f"{folder} has files that are no packages ({', '.join(foreign[:3])}): name a new or empty folder")
    for path in files:
        path.unlink()


def main() -> None:
    """Make the files, and print each with its size."""
    parser = argparse.ArgumentParser(description="Make the packages of a release.")
    parser.add_argument("--repository", default=_REPOSITORY, metavar="URL", help="where the release will be")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", metavar="FOLDER")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _remove_earlier_files(folder)
    epoch = int(git("log", "-1", "--format=%ct"))
    sdist = build_packages(folder, epoch)
    write_recipes(folder, sdist, options.repository)
    write_archive(folder / NAME)
    if not write_debian_package(folder, epoch):
        print("no Debian package: dpkg-deb is not installed", file=sys.stderr)
    lines: list[str] = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n")
        print(f"{path.name}: {len(data):,} bytes")
    (folder / _SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
