"""`python -m linkgauge` and the `linkgauge` command."""

import gc
import signal
import sys
from collections.abc import Callable, Sequence


def main() -> None:
    """Run the command line; what it answers is the exit status.

    What it imports stays: to look for garbage meanwhile takes a tenth of the time to the app's first frame. The
    collection begins with the event loop (engine/host/event_loop); commands without one are short.
    """
    gc.disable()
    run_command_line = _load_command_line()
    sys.exit(run_command_line(sys.argv[1:]))


def _load_command_line() -> Callable[[Sequence[str]], int]:
    """Import the command line. Ctrl-C meanwhile ends the process at once: Python would print where it was."""
    handler = signal.getsignal(signal.SIGINT)
    has_pythons_handler = handler is signal.default_int_handler
    if has_pythons_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .tui.cli.main import run_command_line

    if has_pythons_handler:
        signal.signal(signal.SIGINT, handler)
    return run_command_line


if __name__ == "__main__":
    main()
