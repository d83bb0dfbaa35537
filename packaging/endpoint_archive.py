"""Make linkgauge-endpoint.pyz: the far end in one file, which runs with `python3` alone.

Usage: .venv/bin/python packaging/endpoint_archive.py FILE

The file has the modules that the endpoint imports, anywhere in them, and platformdirs. modulefinder of the standard
library finds them. The same sources make the same bytes. `make dist` makes it beside the other packages.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import io
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
NAME: Final = "linkgauge-endpoint.pyz"
_MAIN: Final = "linkgauge.tui.cli.runners.endpoint_archive"
_BUNDLED: Final = ("linkgauge", "platformdirs")
# Packages of extras, of the app and of the command line. The endpoint says what is missing, if it is asked for it.
_LEFT_OUT: Final = (
    *("textual", "rich", "click", "uvloop", "prometheus_client", "zeroconf", "psutil", "cryptography"),
)
_STARTED: Final = ("linkgauge.engine.workers.fork_server", "linkgauge.engine.workers.worker")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_SHEBANG: Final = b"#!/usr/bin/env python3\n"
_START: Final = f"""import sys
if sys.version_info < (3, 11):
    sys.exit("{NAME} needs Python 3.11 or newer; this is %d.%d" % sys.version_info[:2])
from {_MAIN} import main
sys.exit(main())
"""


def find_sources() -> Iterator[tuple[str, Path]]:
    """Yield the name in the archive and the file of each module that the endpoint may import."""
    with tempfile.TemporaryDirectory() as folder:
        # In a clone the root of the repository is the package, whatever the clone is called.
        (Path(folder) / "linkgauge").symlink_to(ROOT)
        finder = ModuleFinder([folder, *sys.path], excludes=list(_LEFT_OUT))
        for name in (_MAIN, *_STARTED):
            finder.import_hook(name)
        for name, module in sorted(finder.modules.items()):
            file: str | None = getattr(module, "__file__", None)
            if name.partition(".")[0] in _BUNDLED and file is not None:
                path = Path(file)
                suffix = "/__init__.py" if path.name == "__init__.py" else ".py"
                yield name.replace(".", "/") + suffix, path.resolve()


def build_archive(shebang: bytes = _SHEBANG) -> bytes:
    """Return the bytes of the file; the places in it count from the first line on."""
    content = io.BytesIO()
    content.write(shebang)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in find_sources():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), source.read_bytes(), zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("LICENSE", _EPOCH), (ROOT / "LICENSE").read_bytes(), zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), _START, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def write_archive(path: Path) -> None:
    """Write the archive as a program."""
    path.write_bytes(build_archive())
    path.chmod(0o755)


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]))
