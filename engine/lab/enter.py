"""`python -m linkgauge.engine.lab.enter KEEPER PARENT -- COMMAND …`: run a command at the near end of a lab.

The process becomes the command. It gets SIGHUP, as when a terminal closes, when the process that started it ends.
A module of its own because every command in a lab starts with it, and it imports next to nothing.
"""

import os
import signal
import sys

from .namespaces import die_with_parent, set_namespace


def enter_near_namespace(keeper: int) -> None:
    """Move this process into the near namespace of a keeper's lab."""
    for name in ("user", "net"):
        namespace = os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if not os.path.samestat(os.fstat(namespace), os.stat(f"/proc/self/ns/{name}")):  # noqa: PTH116
            set_namespace(namespace)
        os.close(namespace)


def main() -> None:
    """Enter the namespace and become the command; exit with status 3 if that fails."""
    keeper, parent, dashes, *command = sys.argv[1:]
    assert dashes == "--"  # noqa: S101 - builder.py writes this command line
    try:
        enter_near_namespace(int(keeper))
        die_with_parent(signal.SIGHUP)
        if os.getppid() != int(parent):  # the parent ended before `die_with_parent` took effect
            sys.exit(3)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent waits for signals with them blocked
        os.execvp(command[0], command)  # noqa: S606 - there is no shell in between
    except OSError as error:
        sys.stderr.write(f"linkgauge: {command[0]} cannot be run at the lab's near end: {error}\n")
        sys.exit(3)


if __name__ == "__main__":
    main()
