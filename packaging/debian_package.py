"""Make linkgauge-endpoint_VERSION_all.deb: the endpoint in one file, with its service, as Debian installs it.

The service's unit and the manual page are those of the command `linkgauge endpoint`, with this program's name and
options in them. dpkg-deb makes the package. One commit makes the same bytes each time.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from endpoint_archive import ROOT, build_archive
from linkgauge import __version__
from recipe_templates import fill_template

_NAME: Final = "linkgauge-endpoint"
_PACKAGING: Final = ROOT / "packaging"
_MAINTAINER: Final = "The linkgauge developers <developers@linkgauge.example>"
_SCRIPTS: Final = ("postinst", "prerm", "postrm")
_SHEBANG: Final = b"#!/usr/bin/python3\n"  # Debian's, whatever PATH says
_COMMAND: Final = "/usr/local/bin/linkgauge endpoint", f"/usr/bin/{_NAME}"
_SYNOPSIS: Final = r"\fBlinkgauge endpoint\fR", r"\fBlinkgauge\-endpoint\fR"
# The program has none of the commands below `linkgauge endpoint`.
_BELOW: Final = re.compile(r" \[key \.\.\.\]|^\.br\n\\fBlinkgauge endpoint key.*\n", re.MULTILINE)
_OF_BELOW: Final = ".SH LINKGAUGE ENDPOINT"
_OPTION: Final = re.compile(r"--[a-z-]+")
_SECTION: Final = re.compile(r"(?=^\.SH )", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"(?=^\.TP\n)", re.MULTILINE)
_FILES: Final = r""".SH FILES
.TP
\fB/etc/linkgauge/key\fR
The service's key, which the clients need. The installation makes it.
.TP
\fB/etc/linkgauge/limits.toml\fR
The service's limits.
.SH SERVICE
\fBsystemctl enable \-\-now linkgauge.socket\fR opens the port now and at each boot.
"""


def write_debian_package(folder: Path, epoch: int) -> bool:
    """Make the package with the time of the commit; return whether dpkg-deb is there to do it."""
    dpkg_deb = shutil.which("dpkg-deb")
    if dpkg_deb is None:
        return False
    # Debian sorts 1.0~rc1 before 1.0.
    version = re.sub(r"(?=a|b|rc)", "~", __version__, count=1)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        program = f"usr/bin/{_NAME}"
        _write_files(root, {program: build_archive(_SHEBANG)})
        _write_files(root, _documents(_manual_page(root / program), version, epoch) | _service_files())
        _write_files(root / "DEBIAN", _control_files(root, version))
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.name in {_NAME, *_SCRIPTS} else 0o644)
            os.utime(path, (epoch, epoch))
        options = ("--root-owner-group", "-Zxz", "--build")
        command = [dpkg_deb, *options, str(root), str(folder / f"{_NAME}_{version}_all.deb")]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the Debian package cannot be built:\n{done.stderr}")
    return True


def _service_files() -> dict[str, bytes]:
    """Return the units, with this program in place of the command, and the file of limits."""
    unit = (_PACKAGING / "linkgauge.service").read_text(encoding="ascii")
    return {
        "usr/lib/systemd/system/linkgauge.service": unit.replace(*_COMMAND).encode(),
        "usr/lib/systemd/system/linkgauge.socket": (_PACKAGING / "linkgauge.socket").read_bytes(),
        "etc/linkgauge/limits.toml": (_PACKAGING / "debian" / "limits.toml").read_bytes(),
    }


def _documents(page: str, version: str, epoch: int) -> dict[str, bytes]:
    """Return the manual page, the licence and the changes, of the package and of linkgauge."""
    date = format_datetime(datetime.fromtimestamp(epoch, UTC))
    change = f"{_NAME} ({version}) unstable; urgency=medium\n\n  * Release {__version__}: see NEWS.gz.\n\n"
    folder = f"usr/share/doc/{_NAME}"
    return {
        f"usr/share/man/man1/{_NAME}.1.gz": _compress(page),
        f"{folder}/copyright": (ROOT / "LICENSE").read_bytes(),
        f"{folder}/changelog.gz": _compress(f"{change} -- {_MAINTAINER}  {date}\n"),
        f"{folder}/NEWS.gz": _compress((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")),
    }


def _control_files(root: Path, version: str) -> dict[str, bytes]:
    """Return the files for dpkg itself, given the tree that it installs."""
    installed = sorted(path for path in root.rglob("*") if path.is_file())
    names = {path: str(path.relative_to(root)) for path in installed}
    kibibytes = sum(-(-path.stat().st_size // 1024) for path in installed)
    fields = {"VERSION": version, "INSTALLED_SIZE": str(kibibytes), "MAINTAINER": _MAINTAINER}
    sums = {name: hashlib.md5(path.read_bytes(), usedforsecurity=False) for path, name in names.items()}
    return {
        "control": fill_template(_PACKAGING / "debian" / "control", fields).encode(),
        "conffiles": "".join(f"/{name}\n" for name in sums if name.startswith("etc/")).encode(),
        "md5sums": "".join(f"{each.hexdigest()}  {name}\n" for name, each in sums.items()).encode(),
        **{name: (_PACKAGING / "debian" / name).read_bytes() for name in _SCRIPTS},
    }


def _manual_page(program: Path) -> str:
    """Return the page of `linkgauge endpoint` with the options that the program has, and with its files."""
    command = [sys.executable, str(program), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = set(_OPTION.findall(shown))
    page = (_PACKAGING / "man" / f"{_NAME}.1").read_text(encoding="utf-8")
    kept: list[str] = []
    for section in _SECTION.split(_BELOW.sub("", page).replace(*_SYNOPSIS)):
        if section.startswith(_OF_BELOW):
            continue
        text, *options = _PARAGRAPH.split(section)
        own = [each for each in options if known.intersection(_described(each))]
        if text.startswith(".SH SEE ALSO"):
            kept.append(_FILES)
        if own or not options:
            kept += [text, *own]
    return "".join(kept)


def _described(paragraph: str) -> list[str]:
    """Return the options in the second line of a paragraph: the first is `.TP`."""
    return _OPTION.findall(paragraph.split("\n")[1].replace(r"\-", "-"))


def _compress(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def _write_files(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
