"""The signals that end a command, without those that its starter made it ignore.

nohup(1) starts a program with SIGHUP ignored, and a shell without job control its background jobs with SIGINT. A
handler of the program would undo that, so code that handles a signal asks here which ones are left.
"""

import os
import signal
from collections.abc import Sequence
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_signals(*, draws: bool = False) -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM and SIGHUP, without those that this process was started to ignore.

    A command that draws on a terminal always has SIGHUP: it cannot go on without the terminal.
    """
    return tuple(
        number
        for number in _END_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN or (draws and number is signal.SIGHUP)
    )


def keep_ignored(command: Sequence[str]) -> list[str]:
    """Return a command line for a command that ignores the same signals as this process.

    It is for programs in the session of this process. uvloop starts every child with the default of each signal,
    whatever `preexec_fn` does: the shell ignores them again and becomes the command.
    """
    ignored = [number.name.removeprefix("SIG") for number in _END_SIGNALS if number not in end_signals()]
    if not ignored:
        return list(command)
    return ["/bin/sh", "-c", f"trap '' {' '.join(ignored)}; exec \"$@\"", "sh", *command]


def die_with_parent(signal_number: int) -> None:
    """Make the kernel send this process a signal when its parent ends (prctl(2))."""
    import ctypes  # here: few processes need it

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")
