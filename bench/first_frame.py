"""What the first frame of the app costs: CPU from the start of the process to the frame, against Textual's import.

Usage: .venv/bin/python bench/first_frame.py [--rounds 7] [--most RATIO]

Both are measured in turn, in CPU seconds of the process (user and system), so that a busy machine changes them
little. Both have bytecode, as an installed package does: pip compiles Textual, and a first start compiles the
modules of a source tree, unless PYTHONDONTWRITEBYTECODE forbids it. That costs 0.15 s more at each start. With
`--most` the exit status is 1 if the ratio is above it. `make costs` prints the same as a table.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from statistics import median

_SIZE = (120, 40)
# The app ends at once when its first frame is written.
_FRAME = """
import os
from linkgauge.tui.kit.drawing.screen_diff import DiffApp
write = DiffApp._write_changes
def write_first(self, screen):
    write(self, screen)
    if self.first_frame.is_set():
        os._exit(0)
DiffApp._write_changes = write_first
from linkgauge.__main__ import main
main()
"""
# Textual with the parts of it that the cockpit has.
_TEXTUAL = """
import textual.app, textual.containers, textual.screen, textual.scroll_view, textual.drivers.linux_driver
from textual.widgets import Input, Static
"""


def first_frames(rounds: int) -> Iterator[Sequence[object]]:
    """Yield one row: median CPU to the first frame, and to import Textual, and the median ratio of both."""
    with tempfile.TemporaryDirectory() as bytecode:
        _cpu_s(_FRAME, bytecode)
        _cpu_s(_TEXTUAL, bytecode)
        pairs = [(_cpu_s(_FRAME, bytecode), _cpu_s(_TEXTUAL, bytecode)) for _ in range(rounds)]
    frames, imports = zip(*pairs, strict=True)
    ratio = median(frame / alone for frame, alone in pairs)
    yield f"{median(frames):.2f} s", f"{median(imports):.2f} s", f"{ratio:.2f}"


def _cpu_s(code: str, bytecode: str) -> float:
    """Return the CPU seconds of a process that runs some code in a terminal, with the folder of its bytecode.

    Raises:
        RuntimeError: It failed.
    """
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _SIZE[1], _SIZE[0], 0, 0))
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                env={
                    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
                    "PYTHONPYCACHEPREFIX": bytecode,
                    "TERM": "xterm-256color",
                    "LANG": "C.UTF-8",
                    "LINKGAUGE_DATA_DIR": folder,
                    "LINKGAUGE_CONFIG_DIR": folder,
                },
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        os.close(slave)
        output = _read_all(master)
    if process.returncode:
        raise RuntimeError(f"the first frame did not come: {output[-300:]}")
    return usage.ru_utime + usage.ru_stime


def _read_all(master: int) -> str:
    """Return what the terminal has got, and close it."""
    data = b""
    try:
        while part := os.read(master, 65_536):
            data += part
    except OSError:  # its other end is closed, and all is read
        pass
    finally:
        os.close(master)
    return data.decode(errors="replace")


def main() -> int:
    """Measure, and print one line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--most", type=float, help="the largest ratio that is good", metavar="RATIO")
    options = parser.parse_args()
    (row,) = first_frames(options.rounds)
    print("first frame {}, Textual's import {}, ratio {}".format(*row))
    return int(options.most is not None and float(str(row[-1])) > options.most)


if __name__ == "__main__":
    sys.exit(main())
