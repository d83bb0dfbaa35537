"""A worker process: hosts sessions on its own event loop, and only that.

Forked by a starter (starter.py) with the descriptors of its command channel and of the shared counters. It ends
when the channel does, so it cannot outlive the process that asked for it, however that one ended.

Commands in:  setup {end, interval_ns, block_bytes, mode, socket, cores, shares_core,
                     workload, request_bytes, response_bytes, burst, pace_ns}
              open {direction, session, generation, window_bytes, address, family, run, secret}   near
              adopt {direction, session, generation, window_bytes, secret} + descriptor    far: accepted
              keep {flows, sessions, generation, oldest}     close what was opened before this and is not among it
              go {}                                        let payload flow, of these sessions and all later ones
Events out:   ready {}; opened {facts}; lost {direction, session, generation, why};
              failed {direction, session, generation, why}: it could not be opened
"""

import asyncio
import contextlib
import os
import socket
import time
from typing import Any

from ..host.event_loop import run
from ..metering.shared_counters import SharedCounters, slot_index
from ..model.errors import LinkgaugeError
from ..model.plan import PROBE_SESSION, SECOND_NS, Direction, End, Mode, SocketOptions
from ..model.serialization import decode, encode
from ..model.workload import Workload, workload_named
from ..workloads import session_handshake as opening
from ..workloads import sockets
from ..workloads.readiness import create_poller
from ..workloads.session import Payload, Session, SessionContext, WorkerResources
from ..workloads.session_handshake import SessionConfig
from .ipc import WorkerChannel, WorkerMessage

OPEN_DEADLINE_S = 15.0  # a session that is added to a saturated link may lose its first packets
_RECEIVE_BYTES = 1 << 20
_MOST_REFRESH_S = 0.4  # what comes on a connection tells whether the other end is there


class Worker:
    """The sessions of one worker and the commands that change them."""

    def __init__(self, channel: socket.socket, counters: SharedCounters, number: int) -> None:
        self._counters = counters
        self._number = number
        self._sessions: dict[tuple[Direction, int], Session] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._supplies: WorkerResources | None = None
        self._opening_of = SessionConfig(End.NEAR, Workload.STREAM, SocketOptions())
        self._mode = Mode.COPY
        # The first sessions wait for each other: the flood of some would starve the opening of the rest.
        self._held = True
        self._shares_core = False
        self._cores: set[int] = set()
        self._expected = 0  # sessions, before a person wants more of them
        self._kept: WorkerMessage = {"flows": [], "sessions": 0, "generation": -1, "oldest": 0}
        self._refresh_s = 0.1
        self.done = asyncio.Event()
        self._channel = WorkerChannel(channel, self._command, self.done.set)

    async def serve(self) -> None:
        """Host sessions until the channel ends."""
        self._channel.send({"event": "ready"})
        refreshing = asyncio.create_task(self._refresh())
        try:
            await self.done.wait()
        finally:
            refreshing.cancel()
            for task in self._opening:
                task.cancel()
            for session in self._sessions.values():
                session.close()
            if self._supplies is not None:
                self._supplies.poller.close()
                self._supplies.payload.close()
            self._channel.close()

    def _command(self, message: WorkerMessage, fd: int | None) -> None:
        command = message["command"]
        if command == "setup":
            self._setup(message)
        elif command == "go":
            self._held = False
            self._expected = len(self._sessions)
            for session in self._sessions.values():
                self._start(session, is_alone=len(self._sessions) == 1)
        elif command == "keep":
            self._keep(message)
        elif command in {"open", "adopt"}:
            task = asyncio.create_task(self._open(message, fd))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _setup(self, message: WorkerMessage) -> None:
        options = decode(SocketOptions, message["socket"])
        self._opening_of = SessionConfig(End(message["end"]), workload_named(message["workload"]), options)
        self._cores = set(message["cores"])
        self._shares_core = message["shares_core"]
        if message["cores"]:
            _stay_on({message["cores"][self._number % len(message["cores"])]})
        self._mode = sockets.supported_mode(message["mode"] and Mode(message["mode"]))
        request, burst = message["request_bytes"], message["burst"]
        self._supplies = WorkerResources(
            payload=Payload(message["block_bytes"], self._mode),
            buffer=memoryview(bytearray(max(_RECEIVE_BYTES, message["block_bytes"]))),
            mode=self._mode,
            requests=memoryview(os.urandom(request * burst)),
            poller=create_poller(),
            request_bytes=request,
            response_bytes=message["response_bytes"],
            burst=burst,
            pace_ns=message["pace_ns"],
        )
        # Twice an interval, so that a sample's TCP_INFO and CPU are at most half an interval old.
        self._refresh_s = min(message["interval_ns"] / SECOND_NS / 2, _MOST_REFRESH_S)

    def _keep(self, message: WorkerMessage) -> None:
        self._kept = message
        for (direction, number), session in list(self._sessions.items()):
            if self._is_let_go(direction, number, session.generation):
                session.close()
                del self._sessions[direction, number]

    def _is_let_go(self, direction: Direction, number: int, generation: int) -> bool:
        """Return whether a connection was let go of, perhaps while it was still being opened.

        At the far end a data connection of newer settings may overtake the word that they changed: the
        word closes only what is older than itself.
        """
        if number == PROBE_SESSION:  # it asks from the beginning to the end, whatever the settings
            return False
        kept = self._kept
        wanted = direction in kept["flows"] and number <= kept["sessions"]
        return generation < kept["oldest"] or (not wanted and generation <= kept["generation"])

    async def _open(self, message: WorkerMessage, fd: int | None) -> None:
        direction, number = Direction(message["direction"]), message["session"]
        key: dict[str, Any] = {
            "direction": direction,
            "session": number,
            "generation": message["generation"],
        }
        try:
            sock = self._socket(message, fd)
        except OSError as error:
            self._channel.send({"event": "failed", **key, "why": error.strerror or str(error)})
            return
        how, beside = self._opening_of, None
        try:
            async with asyncio.timeout(OPEN_DEADLINE_S):
                sockets.prepare(sock, message["window_bytes"], how.session_options)
                await (
                    opening.send_accepted(sock) if fd is not None else opening.connect(sock, message, how.options)
                )
                beside = await opening.negotiate_listener(sock, how, message)
            facts = sockets.read_socket_info(
                sock,
                how.end,
                direction,
                number,
                message["window_bytes"],
                self._mode,
                is_sender=how.is_sender(direction),
            )
        except (OSError, LinkgaugeError) as error:
            _close(sock, beside)
            why = "no answer in time" if isinstance(error, TimeoutError) else getattr(error, "strerror", None)
            self._channel.send({"event": "failed", **key, "why": why or str(error)})
            return
        except asyncio.CancelledError:
            _close(sock, beside)
            raise
        if self._host(sock, message, beside):
            self._channel.send({"event": "opened", "facts": encode(facts)})

    @staticmethod
    def _socket(message: WorkerMessage, fd: int | None) -> socket.socket:
        if message["command"] == "open":
            return socket.socket(message["family"])
        if fd is None:
            raise OSError("no descriptor is left for another connection; raise the limit (ulimit -n)")
        return socket.socket(fileno=fd)

    def _host(self, sock: socket.socket, message: WorkerMessage, beside: Any) -> bool:
        """Take an open connection in; return whether it is still wanted."""
        direction, number, generation = Direction(message["direction"]), message["session"], message["generation"]
        previous = self._sessions.get((direction, number))
        overtaken = previous is not None and previous.generation > generation
        if overtaken or self._is_let_go(direction, number, generation):
            _close(sock, beside)
            return False
        if previous is not None:
            previous.close()

        key = {"direction": direction, "session": number, "generation": generation}

        def lost(why: str) -> None:
            self._sessions.pop((direction, number), None)
            self._channel.send({"event": "lost", **key, "why": why})

        assert self._supplies is not None  # noqa: S101 - setup is the first command
        place = SessionContext(self._counters, slot_index(direction, number), generation, lost)
        session = opening.create_session(sock, place, self._supplies, self._opening_of, message, beside)
        self._sessions[direction, number] = session
        if not self._held:
            for other in self._sessions.values():
                other.share_worker()
            if self._shares_core and len(self._sessions) > self._expected:
                self._spread()
            self._start(session, is_alone=len(self._sessions) == len(self._opening) == 1)
        return True

    def _start(self, session: Session, *, is_alone: bool) -> None:
        if self._shares_core and not is_alone:
            _set_policy("SCHED_BATCH")
        session.start(is_alone=is_alone)

    def _spread(self) -> None:
        """Leave the core to the other end: with more sessions than were planned, one is too little for both."""
        self._shares_core = False
        _set_policy("SCHED_OTHER")
        _stay_on(self._cores)

    async def _refresh(self) -> None:
        while True:
            for session in list(self._sessions.values()):
                session.refresh()
            self._counters.set_worker_cpu(self._number, time.process_time_ns())
            heard = [session.last_received_ns for session in self._sessions.values()]
            self._counters.set_last_received(self._number, max(heard, default=0))
            await asyncio.sleep(self._refresh_s)


def _close(sock: socket.socket, beside: Any) -> None:
    sock.close()
    if isinstance(beside, socket.socket):
        beside.close()


def _stay_on(cores: set[int]) -> None:
    """Stay on these cores; where they are not this process's to use, stay where the kernel puts it."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _set_policy(name: str) -> None:
    """Choose a policy that anybody may choose (sched(7)), where the system has it.

    With SCHED_BATCH the worker of the other end, on the same core, finishes what it is at before this one goes on:
    woken by the first of several answers, this process waits for the rest of them. Ten pairs on two cores made
    1.29 times as many transactions of `crr` so, and 1.13 of `rr`, medians of 30 rounds in turn. A pair that has its
    worker to itself has nothing to wait for, and lost 5 to 8 %.
    """
    policy = getattr(os, name, None)
    if policy is not None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(0))


async def _serve(channel_fd: int, counters_fd: int, number: int) -> None:
    counters = SharedCounters(counters_fd)
    try:
        await Worker(socket.socket(fileno=channel_fd), counters, number).serve()
    finally:
        counters.close()


def serve(channel_fd: int, counters_fd: int, number: int) -> None:
    """Serve a command channel to its end."""
    run(_serve(channel_fd, counters_fd, number))
