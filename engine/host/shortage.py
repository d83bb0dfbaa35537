"""A lack of memory, threads or processes: how Python words it, and the one line that a user gets.

Small on purpose, and imported first: there may be no memory for more.
"""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

# Made now: later there may be no memory for it.
_SENTENCE = "out of memory, threads or processes: raise ulimit -d, -v, -u, or the limits of the service"
_LINE = f"linkgauge: {_SENTENCE}\n".encode()
_STATUS = 3  # as of any test that could not run
_reserve = bytearray(1 << 20)  # given back at such a lack: to handle an error takes memory, too
_SIGNS = (
    "can't start new thread",
    "cannot allocate memory",
    "failed to map segment",
    "error return without exception set",
    "returned null without setting an exception",
    "lost sys.stderr",  # of a print during such a lack
)
# Of fork(2) in a child, and of OpenBLAS, which then raises SIGINT in its process.
_SIGNS_OF_CHILDREN = ("resource temporarily unavailable", "pthread_create failed", "memoryerror")


@contextmanager
def told_in_one_line() -> Generator[None]:
    """End this process with one line, and no traceback, if what the context does fails for such a lack.

    It ends at once: an exit handler of a library may wait for a thread that never began.
    """
    try:
        yield
    except Exception as error:
        _reserve.clear()
        if not _is_shortage(error):
            raise
        with suppress(Exception):
            sys.stdout.flush()
        os.write(2, _LINE)
        os._exit(_STATUS)


def find_shortage_in(words: str) -> str | None:
    """Return what the last words of a process of ours or of a library say, if it ended for such a lack."""
    is_it = any(sign in words.lower() for sign in (*_SIGNS, *_SIGNS_OF_CHILDREN))
    return _SENTENCE if is_it else None


def require_threads(count: int) -> None:
    """Raise RuntimeError unless this user may have so many more threads now: a library may not expect it later."""
    end = threading.Event()
    threads: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait)
            thread.start()
            threads.append(thread)
    finally:
        end.set()
        for thread in threads:
            thread.join()


def start_if_possible(thread: threading.Thread) -> bool:
    """Start a thread that a test can do without; return False if this user may have no more of them."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _is_shortage(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False
