"""The worker processes of one end of one run, and the counters they share with it."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from ..host.core_affinity import shares_cores, usable_cores
from ..host.event_loop import await_shielded
from ..metering.shared_counters import SharedCounters
from ..model.errors import WorkerError
from ..model.plan import MAX_WORKERS, PROBE_SESSION, Direction, End, Plan
from ..model.serialization import encode
from ..protocol.messages import Change
from ..workloads.latency_probe import probe_setup
from .fork_client import ForkServerLease, WorkerProcess
from .ipc import WorkerChannel, WorkerMessage

START_DEADLINE_S: Final = 10.0
END_DEADLINE_S: Final = 2.0
_PROBE_WORKER: Final = MAX_WORKERS  # one for itself: beside a stream it would measure how busy its own loop is
_CONNECTIONS_APART: Final = 4


class _Member:
    """One worker process and this end of its channel."""

    channel: WorkerChannel

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.ready = asyncio.Event()
        self.why_ended: str | None = None


class WorkerPool:
    """Starts workers when sessions need them; `async with` gives all of them back.

    `on_event(event)` gets what workers say (see worker.py); `on_lost(why)` is called where one ends by itself.
    """

    def __init__(
        self,
        end: End,
        plan: Plan,
        on_event: Callable[[WorkerMessage], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._end = end
        self._plan = plan
        self._on_event = on_event
        self._on_lost = on_lost
        self._members: dict[int, _Member] = {}
        self._size = plan.workers or default_worker_count(plan)
        self._closing = False
        self._going = False
        self._kept: WorkerMessage | None = None
        self._starting = asyncio.Lock()
        self._starter: ForkServerLease | None = None
        self._mourning: set[asyncio.Task[None]] = set()
        self.counters = SharedCounters.create()

    async def __aenter__(self) -> Self:
        """Start the workers that the plan's sessions need."""
        try:
            self._starter = ForkServerLease()
            settings = self._plan.settings
            numbers = {
                self._host_of(flow, session)
                for flow in settings.direction.flows
                for session in range(1, settings.sessions + 1)
            }
            if self._plan.probe:
                numbers.add(_PROBE_WORKER)
            await asyncio.gather(*(self._start(number) for number in sorted(numbers)))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        await self.close()

    async def send_command(
        self, direction: Direction, session: int, message: WorkerMessage, fd: int | None = None
    ) -> None:
        """Send a session's command to the worker that hosts it, which is started where it is not there yet."""
        number = self._host_of(direction, session)
        try:
            async with self._starting:
                self._refuse_closing()
                if number not in self._members:
                    await self._start(number)
        except BaseException:
            if fd is not None:
                os.close(fd)
            raise
        self._members[number].channel.send(message | {"direction": direction, "session": session}, fd)

    def _host_of(self, direction: Direction, session: int) -> int:
        """Return the worker of a session: each direction goes round all of them, the two half a round apart."""
        if session == PROBE_SESSION:
            return _PROBE_WORKER
        return (session - 1 + (direction is Direction.IN) * (self._size // 2)) % self._size

    def start_payload(self) -> None:
        """Let payload flow: of the sessions there are, and of all that are opened later. The probe went before."""
        self._going = True
        for number, member in self._members.items():
            if number != _PROBE_WORKER:
                member.channel.send({"command": "go"})

    def apply_change(self, change: Change) -> None:
        """Tell every worker to let go of what a change no longer wants."""
        self._kept = {
            "command": "keep",
            "flows": list(change.settings.direction.flows),
            "sessions": change.settings.sessions,
            "generation": change.generation,
            "oldest": change.oldest,
        }
        self._command_all(self._kept)

    def _command_all(self, message: WorkerMessage) -> None:
        for member in self._members.values():
            member.channel.send(message)

    async def close(self) -> None:
        """End every worker, by force where it does not end by itself, and give the counters back."""
        if self._closing:
            return
        self._closing = True
        members = list(self._members.values())
        for member in members:
            member.channel.close()
            member.ready.set()  # who waits for it waits no longer
        try:
            await await_shielded(_end_all(member for member in members if member.why_ended is None))
        finally:
            self.counters.close()
            if self._starter is not None:
                await self._starter.close()

    async def _start(self, number: int) -> None:
        self._refuse_closing()
        process, ours = await self._forked(number)
        if self._closing:  # nobody would end it: it ends as its channel does
            ours.close()
            await await_shielded(process.shut_down(END_DEADLINE_S))
            self._refuse_closing()
        member = _Member(process)
        member.channel = WorkerChannel(
            ours, lambda message, _: self._heard(member, message), lambda: self._eof(member)
        )
        self._members[number] = member
        member.channel.send(self._setup() | (probe_setup() if number == _PROBE_WORKER else {}))
        if self._kept is not None:
            member.channel.send(self._kept)
        if self._going or number == _PROBE_WORKER:
            member.channel.send({"command": "go"})
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await member.ready.wait()
        except TimeoutError as error:
            raise WorkerError(f"a worker process did not answer in {START_DEADLINE_S:g} s") from error
        self._refuse_closing()
        if member.why_ended is not None:
            raise WorkerError(member.why_ended)

    async def _forked(self, number: int) -> tuple[WorkerProcess, socket.socket]:
        """Return a new worker's process and this end of its channel."""
        assert self._starter is not None  # noqa: S101 - entered
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                async with asyncio.timeout(START_DEADLINE_S):
                    return await self._starter.start(theirs.fileno(), self.counters.fd, number), ours
        except TimeoutError as error:
            ours.close()
            raise WorkerError(f"no worker process could be started in {START_DEADLINE_S:g} s") from error
        except BaseException:
            ours.close()
            raise

    def _refuse_closing(self) -> None:
        """Raise WorkerError where all is given back: a session may be asked for at that very moment."""
        if self._closing:
            raise WorkerError("the run is over")

    def _setup(self) -> WorkerMessage:
        """Return a worker's first command: all of the plan that it has to know."""
        plan = self._plan
        request_bytes, response_bytes = plan.transaction_sizes
        return {
            "command": "setup",
            "end": self._end,
            "interval_ns": plan.interval_ns,
            "block_bytes": plan.block_bytes,
            "mode": plan.mode,
            "socket": encode(plan.socket),
            "workload": plan.workload,
            "request_bytes": request_bytes,
            "response_bytes": response_bytes,
            "burst": plan.burst,
            "pace_ns": 0,
            "cores": list((plan.near_cores if self._end is End.NEAR else plan.far_cores) or ()),
            "shares_core": shares_cores(plan),
        }

    def _heard(self, member: _Member, message: WorkerMessage) -> None:
        if message["event"] == "ready":
            member.ready.set()
        else:
            self._on_event(message)

    def _eof(self, member: _Member) -> None:
        if self._closing:
            return
        member.channel.close()
        task = asyncio.get_running_loop().create_task(self._mourn(member))
        self._mourning.add(task)
        task.add_done_callback(self._mourning.discard)

    async def _mourn(self, member: _Member) -> None:
        """Find out why a worker ended, and say so."""
        how, last_words = await member.process.shut_down(END_DEADLINE_S)
        member.why_ended = f"a worker process ended by itself ({how})" + (last_words and f": {last_words}")
        if member.ready.is_set():
            self._on_lost(member.why_ended)
        member.ready.set()


async def _end_all(members: Iterable[_Member]) -> None:
    await asyncio.gather(*(member.process.shut_down(END_DEADLINE_S) for member in members))


def default_worker_count(plan: Plan) -> int:
    """Return how many workers an end may have: half the cores this process may use.

    For payload that starts on several connections up to four of them have their own, however few the cores are.
    With more processes than cores the kernel puts the two ends of a session on one core as often as not, and what
    was sent is still in its cache: eight sessions on two cores took 0.30 ms/MiB with one worker at each end, 0.22
    with four, rounds in turn. Transactions take turns anyway. Connections that are added later go where there is
    room: a worker that has to start first would keep the person waiting.
    """
    least = min(_CONNECTIONS_APART, plan.settings.connections) if plan.workload.is_bulk else 1
    return max(least, min(MAX_WORKERS, len(usable_cores()) // 2))
