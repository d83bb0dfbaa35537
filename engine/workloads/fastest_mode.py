"""The fastest mode of sending: copy or sendfile, by a trial of both over this host's loopback.

The faster of the two depends on the machine. On loopback, rounds in turn, one two-core machine carried 101 Gb/s by
copy and 57 by sendfile, another 101 and 128 (`linkgauge run loopback --congestion cubic --mode MODE`). A run that
does not name a mode uses the faster one: the sending host tries both once, for a tenth of a second before the run.
It keeps the result while its name, its kernel and its cores are the same.

The two are tried in turn, and compared slot by slot: a busy machine slows both. In 12 trials under other load, on
a machine where sendfile is faster, the ratio was between 1.4 and 2.6.
"""

import asyncio
import contextlib
import logging
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Final

from ..host.machine_measurements import forget_measurement, identify_machine, load_measurement, save_measurement
from ..model.plan import MIB, SECOND_NS, Mode
from .session import RECEIVE_BYTES, Payload, allocate_buffer
from .sockets import set_congestion, supported_mode, unpaced_congestion
from .stream import receive_pieces

_FILE_NAME: Final = "fastest-mode.json"
_SLOT_NS: Final = 8_000_000  # of one mode
_SETTLE_NS: Final = 1_000_000  # until the other mode's bytes in the socket's buffers have been read
_MAX_PAIRS: Final = 7
_CLEAR_PAIRS: Final = 3  # that agree are enough
_CLEAR_RATIO: Final = 1.1
_DEADLINE: Final = struct.pack("ll", 1, 0)  # for one system call (SO_SNDTIMEO, socket(7))
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModeTrial:
    """The rates of both modes: medians over short slots, in bits a second."""

    copy_bit_s: int
    sendfile_bit_s: int

    @property
    def fastest(self) -> Mode:
        """The faster mode."""
        return Mode.SENDFILE if self.sendfile_bit_s > self.copy_bit_s else Mode.COPY


class ModeChooser:
    """Chooses the mode in which this host sends fastest, by a trial at the first question.

    `directory` has the results of earlier trials, for each machine that shares it; None keeps one in memory only.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._path = None if directory is None else directory / _FILE_NAME
        self._trial: ModeTrial | None = None
        self._lock = asyncio.Lock()

    async def choose(self, *, is_idle: bool = True) -> Mode:
        """Return the fastest mode; copy if no trial can be made, or none was and this host is not idle.

        If a filter denies the mode to this process, it is returned once more: the run copies instead, and warns.
        The trial is forgotten, because it was made under other conditions.
        """
        async with self._lock:
            if self._trial is None and self._path is not None:
                self._trial = load_measurement(self._path, ModeTrial, identify_machine())
            if self._trial is None and is_idle:
                await self._try()
            fastest = Mode.COPY if self._trial is None else self._trial.fastest
            if supported_mode(fastest) is not fastest:
                self._forget()
        return fastest

    def _forget(self) -> None:
        _log.debug("mode trial is forgotten: %s is denied now", self._trial and self._trial.fastest)
        self._trial = None
        if self._path is not None:
            with contextlib.suppress(OSError):
                forget_measurement(self._path, identify_machine())

    async def _try(self) -> None:
        """Make a trial, and save it. If that fails, the next run makes another one."""
        with contextlib.suppress(RuntimeError):  # no thread could be started
            self._trial = await asyncio.to_thread(try_modes)
        _log.debug("mode trial: %s", self._trial)
        if self._trial is not None and self._path is not None:
            with contextlib.suppress(OSError):
                save_measurement(self._path, identify_machine(), self._trial)


def try_modes() -> ModeTrial | None:
    """Try both modes over loopback, in this thread and another; None if this host cannot.

    It takes about a tenth of a second, and two cores if there are two.
    """
    if sys.platform != "linux":
        return None
    payload = Payload(MIB, Mode.SENDFILE)
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(payload.close)
            if payload.fd < 0:
                return None
            return _Trial(*_connect(stack), payload).run()
    except (OSError, MemoryError, RuntimeError) as error:  # RuntimeError: no thread could be started
        _log.debug("mode trial failed: %r", error)
        return None


def _connect(stack: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        sender = stack.enter_context(socket.socket())
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _DEADLINE)
        congestion = unpaced_congestion()
        if congestion is not None:
            with contextlib.suppress(OSError):
                set_congestion(sender, congestion)
        sender.connect(server.getsockname())
        server.settimeout(1)
        receiver, address = server.accept()
    stack.enter_context(receiver)
    if address != sender.getsockname():
        raise ConnectionRefusedError("another process has connected")
    receiver.settimeout(None)
    return sender, receiver


class _Trial:
    """A sender and a receiver, and the bytes that have arrived."""

    def __init__(self, sender: socket.socket, receiver: socket.socket, payload: Payload) -> None:
        self._sender, self._receiver = sender, receiver
        self._pieces = receive_pieces(allocate_buffer(RECEIVE_BYTES))
        self._send: dict[Mode, Callable[[], int]] = {
            Mode.COPY: partial(sender.sendmsg, payload.pieces),
            Mode.SENDFILE: partial(os.sendfile, sender.fileno(), payload.fd, 0, payload.size_bytes),
        }
        self._received_bytes = 0

    def run(self) -> ModeTrial:
        """Return the rates; raise OSError if the connection fails."""
        thread = threading.Thread(target=self._receive, daemon=True)
        thread.start()
        try:
            for mode in self._send:
                self._measure(mode)  # caches, buffers and the congestion window are cold
            return self._compare()
        finally:
            self._sender.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _compare(self) -> ModeTrial:
        pairs: list[tuple[float, float]] = []
        while len(pairs) < _MAX_PAIRS and not _is_clear(pairs):
            pairs.append((self._measure(Mode.COPY), self._measure(Mode.SENDFILE)))
        copy_bit_s = median(copy for copy, _ in pairs)
        return ModeTrial(round(copy_bit_s), round(copy_bit_s * median(pages / copy for copy, pages in pairs)))

    def _measure(self, mode: Mode) -> float:
        """Return the rate of a mode over one slot."""
        self._send_for(mode, _SETTLE_NS)
        began_ns, before = perf_counter_ns(), self._received_bytes
        self._send_for(mode, _SLOT_NS)
        span_ns = perf_counter_ns() - began_ns
        return max(1, self._received_bytes - before) * 8 * SECOND_NS / span_ns

    def _send_for(self, mode: Mode, span_ns: int) -> None:
        send, until_ns = self._send[mode], perf_counter_ns() + span_ns
        while perf_counter_ns() < until_ns:
            send()

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            while count := self._receiver.recvmsg_into(self._pieces)[0]:
                self._received_bytes += count


def _is_clear(pairs: list[tuple[float, float]]) -> bool:
    """Return whether the last pairs agree on the faster mode by a margin."""
    last = pairs[-_CLEAR_PAIRS:]
    if len(last) < _CLEAR_PAIRS:
        return False
    ratios = [pages / copy for copy, pages in last]
    return min(ratios) > _CLEAR_RATIO or max(ratios) < 1 / _CLEAR_RATIO
