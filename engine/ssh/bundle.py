"""The engine as a zip for a host without linkgauge, and the commands that start it there."""

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
_PACKAGES: Final = (
    "model",
    "protocol",
    "host",
    "control",
    "metering",
    "workloads",
    "path",
    "bursts",
    "flows",
    "workers",
    "far",
    "ssh",
)
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same sources make the same bytes

_PYTHONS: Final = "python3 python3.14 python3.13 python3.12 python3.11"
_OLD: Final = "import sys;sys.exit(sys.version_info<(3,11))"
_NO_PYTHON: Final = (
    "if command -v python3 >/dev/null 2>&1; then "
    f'if e=$(python3 -c pass 2>&1); then echo "{BOOTSTRAP_MARK} python $(python3 -V 2>/dev/null)"; '
    f'else echo "$e" | (read -r l; echo "{BOOTSTRAP_MARK} broken $l"); fi; '
    f'else echo "{BOOTSTRAP_MARK} python"; fi'
)
# FileIO reads a line byte by byte, so that the bytes after it stay in the stream. The alarm ends an interpreter
# that receives nothing, and -P keeps modules in the user's home out of its imports.
_FIRST: Final = "import io,signal;signal.alarm(60);exec(io.FileIO(0,closefd=False).readline())"
# One line without apostrophes, so that every login shell passes it to sh unchanged. An installed linkgauge of
# another protocol, or without --stdio, exits with status 2 and has read nothing.
_SCRIPT: Final = (
    "if command -v linkgauge >/dev/null 2>&1; then "
    f"linkgauge endpoint --stdio {PROTOCOL_VERSION}; s=$?; case $s in 2|126|127) ;; *) exit $s;; esac; fi; "
    f'for p in {_PYTHONS}; do if $p -c "{_OLD}" 2>/dev/null; then '
    f'echo "{BOOTSTRAP_MARK} engine"; exec $p -P -c "{_FIRST}"; fi; done; '
    f"{_NO_PYTHON}"
)
REMOTE_COMMAND: Final = f"exec sh -c '{_SCRIPT}'"


@cache
def build_bundle() -> bytes:
    """Return the engine's packages for a far end as a zip; raise OSError if their sources are missing."""
    import zipfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        modules = (path for name in _PACKAGES for path in sorted((_ROOT / "engine" / name).rglob("*.py")))
        for path in [_ROOT / "__init__.py", _ROOT / "engine" / "__init__.py", *modules]:
            name = "linkgauge/" + path.relative_to(_ROOT).as_posix()
            file.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def bootstrap_script() -> bytes:
    """Return the bytes for the waiting interpreter: one line of source, then the bundle."""
    data = build_bundle()
    source = (_ROOT / "engine" / "host" / "memory_file.py").read_text(encoding="utf-8")
    digest = hashlib.sha256(data).hexdigest()
    return f"exec({source!a});run_bundle({len(data)},{digest!r})\n".encode() + data
