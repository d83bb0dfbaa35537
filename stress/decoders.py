"""What a decoder under test is: it reads bytes or text that somebody else wrote, and has valid inputs to vary.

A decoder returns what it made of an input in a word or two. It raises its own error (LinkgaugeError) for an input
that it cannot read; any other exception is a fault. The modules `decoders_of_…` have them all; the protocol's
conversations are in fuzz.py.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class BrokenPromise(AssertionError):
    """An input had a worse result than an error that blames its sender."""


@dataclass(frozen=True)
class Decoder:
    """A decoder with valid inputs. `is_text` inputs are also varied as text."""

    name: str
    decode: Callable[[bytes], str]
    valid: tuple[bytes, ...]
    is_text: bool = False


@cache
def shared_folder() -> Path:
    """Return a folder in memory for the files that decoders read."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=parent))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


def own_folder() -> Path:
    """Return a folder of this process alone."""
    folder = shared_folder() / str(os.getpid())
    folder.mkdir(exist_ok=True)
    return folder


@cache
def own_loop(_pid: int) -> asyncio.AbstractEventLoop:
    """Return an event loop of this process alone."""
    return asyncio.new_event_loop()
