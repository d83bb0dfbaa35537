"""Make the packages of a release: wheel, sdist, the endpoint in one file, its Debian package, and checksums.

Usage: make dist, or .venv/bin/python packaging/dist.py [FOLDER]

The folder is new, empty, or that of an earlier call, whose files are replaced. `sha256sum --check SHA256SUMS`
checks the files. One commit makes the same bytes each time.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import hashlib
import sys
from pathlib import Path
from typing import Final

from debian_package import write_debian_package
from endpoint_archive import NAME, ROOT, write_archive
from python_packages import build_packages
from release_check import git

_SUMS: Final = "SHA256SUMS"


def _remove_earlier_files(folder: Path) -> None:
    """Remove what an earlier call made; end where the folder has anything else, which may be a user's."""
    files = sorted(folder.iterdir())
    if foreign := [path.name for path in files if not (path.name == _SUMS or path.match("linkgauge-*"))]:
        sys.exit(f"{folder} has files that are no packages ({', '.join(foreign[:3])}): name a new or empty folder")
    for path in files:
        path.unlink()


def main() -> None:
    """Make the files, and print each with its size."""
    folder = (Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _remove_earlier_files(folder)
    epoch = int(git("log", "-1", "--format=%ct"))
    build_packages(folder, epoch)
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
