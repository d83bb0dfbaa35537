"""`python -m linkgauge.engine.lab.enter KEEPER PARENT -- COMMAND …`: become a command at the near end of a lab.

It is gone with the process that started it, whatever ends that: SIGHUP, as when a terminal closes.
"""

import os
import signal
import sys

from .namespaces import die_with_parent, set_namespace


def enter_near_namespace(keeper: int) -> None:
    """Move this process into the near namespace of the lab that a process keeps."""
    for name in ("user", "net"):
        theirs = os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if not os.path.samestat(os.fstat(theirs), os.stat(f"/proc/self/ns/{name}")):  # noqa: PTH116
            set_namespace(theirs)
        os.close(theirs)


def main() -> None:
    """Enter and become the command; status 3 where that cannot be."""
    keeper, parent, dashes, *command = sys.argv[1:]
    assert dashes == "--"  # noqa: S101 - building.py writes this command line
    try:
        enter_near_namespace(int(keeper))
        die_with_parent(signal.SIGHUP)
        if os.getppid() != int(parent):  # it ended before the kernel was told to say so
            sys.exit(3)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whoever waits for signals had them held back
        os.execvp(command[0], command)  # noqa: S606 - there is no shell in between
    except OSError as error:
        sys.stderr.write(f"linkgauge: {command[0]} cannot be run at the lab's near end: {error}\n")
        sys.exit(3)


if __name__ == "__main__":
    main()
