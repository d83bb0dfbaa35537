"""Build wheel and sdist of the clone's files, the same bytes for one commit, wherever and whenever."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from release_check import ROOT, git

_BUILD: Final = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # setuptools replaces the arguments
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)
"""


def build_packages(folder: Path, epoch: int) -> Path:
    """Build both in a copy, so that building leaves nothing in the clone; return the sdist."""
    with tempfile.TemporaryDirectory() as copy:
        for name in filter(None, git("ls-files", "-z").split("\0")):
            target = Path(copy) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
            target.chmod(_mode_of(ROOT / name))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
        command = [sys.executable, "-W", "ignore", "-c", _BUILD, str(folder)]
        done = subprocess.run(
            command, cwd=copy, env=environment, umask=0o022, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"the packages cannot be built:\n{done.stderr}")
    (sdist,) = folder.glob("*.tar.gz")
    sdist.write_bytes(_normalize(sdist, epoch))
    return sdist


def _mode_of(path: Path) -> int:
    """Return the mode of a file in a package: the user's umask decided the rest of its mode in the clone."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def _normalize(sdist: Path, epoch: int) -> bytes:
    """Return an sdist with root as owner, and the commit's time in place of the build's, which setuptools keeps."""
    content = io.BytesIO()
    with (
        tarfile.open(sdist) as source,
        # A name in the header would be the file's, and so a folder's.
        gzip.GzipFile("", "wb", fileobj=content, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            changed = member.replace(mtime=epoch, uid=0, gid=0, uname="root", gname="root")
            changed.pax_headers = {}  # setuptools' times with fractions
            target.addfile(changed, source.extractfile(member))
    return content.getvalue()
