"""The engine as a zip, for a host where linkgauge is not installed, and what starts it there."""

import hashlib
import io
from functools import cache
from pathlib import Path
from typing import Final

from ..protocol.preamble import PROTOCOL_VERSION

BOOTSTRAP_MARK: Final = "linkgauge-far"
MIN_PYTHON: Final = (3, 11)
_ROOT: Final = Path(__file__).parents[2]
# The packages of the engine that a far end needs. Results, lab and the near end stay here.
_PACKAGES: Final = ("model", "protocol", "host", "control", "metering", "workloads", "workers", "far", "ssh")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same sources make the same bytes

_PYTHONS: Final = "python3 python3.14 python3.13 python3.12 python3.11"
_OLD: Final = "import sys;sys.exit(sys.version_info<(3,11))"
# FileIO reads a line byte by byte: what follows is not the interpreter's. The alarm ends one that is told no more,
# and -P keeps what lies in the person's home out of its imports.
_FIRST: Final = "import io,signal;signal.alarm(60);exec(io.FileIO(0,closefd=False).readline())"
# Of one line and without apostrophes, so that every login shell hands it to sh as it is. An installed linkgauge of
# another protocol, or that knows no --stdio, leaves with status 2 and has read nothing.
_SCRIPT: Final = (
    "if command -v linkgauge >/dev/null 2>&1; then "
    f"linkgauge endpoint --stdio {PROTOCOL_VERSION}; s=$?; case $s in 2|126|127) ;; *) exit $s;; esac; fi; "
    f'for p in {_PYTHONS}; do if $p -c "{_OLD}" 2>/dev/null; then '
    f'echo "{BOOTSTRAP_MARK} engine"; exec $p -P -c "{_FIRST}"; fi; done; '
    f'echo "{BOOTSTRAP_MARK} python $(python3 -V 2>/dev/null)"'
)
REMOTE_COMMAND: Final = f"exec sh -c '{_SCRIPT}'"


@cache
def build_bundle() -> bytes:
    """Return the package's root and its engine as a zip; raise OSError where their sources are not there."""
    import zipfile

    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as file:
        modules = (path for name in _PACKAGES for path in sorted((_ROOT / "engine" / name).glob("*.py")))
        for path in [_ROOT / "__init__.py", _ROOT / "engine" / "__init__.py", *modules]:
            name = "linkgauge/" + path.relative_to(_ROOT).as_posix()
            file.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return found.getvalue()


def bootstrap_script() -> bytes:
    """Return what an interpreter that waits for it is sent: a line of source, and the engine."""
    data = build_bundle()
    source = (_ROOT / "engine" / "host" / "memory_archive.py").read_text(encoding="utf-8")
    digest = hashlib.sha256(data).hexdigest()
    return f"exec({source!a});run_bundle({len(data)},{digest!r})\n".encode() + data
