"""The workloads rr and fetch: requests and responses of fixed sizes, repeatedly on one connection.

Neither has a header: both ends know the sizes, and TCP keeps the order. A transaction ends with its response. A
fetch has a small request and a large response, whose bytes are counted as they arrive.

A pair that has its worker to itself, with one request in flight, runs in a thread that blocks in recv(2): two
system calls for each transaction and end; a turn of the event loop makes three. Measured on loopback with
200/1000 bytes, that is 66,000 transactions a second instead of 55,000; qperf makes 67,000. Threads of
several pairs would fight for the interpreter's lock (10 pairs: 78,000 with one in a thread, 110,000 with none),
so a pair moves to the worker's poller (socket_io.py) when the worker gets another one.
"""

import errno
import os
import socket
import time
from collections import deque
from time import perf_counter_ns
from typing import Final

from ..model.counters.latency_histogram import (
    BUCKET_BASE,
    MAX_SHIFT,
    MIN_SHIFT,
    SIGNIFICANT_BITS,
    SUB_BUCKET_BITS,
    bucket_of,
)
from ..model.plan import SECOND_NS, Mode
from .session import ReceivingSession, SendingSession, SessionContext, WorkerResources
from .socket_io import ReadyCallback, SocketThread, polling_receive

UNSOLICITED_RESPONSE: Final = "the other host sent a response without a request"


class RrRequester(ReceivingSession):
    """Keeps `burst` requests in flight, and counts each response with its latency."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._requests = memoryview(resources.requests.block)
        self._request_bytes = resources.request_bytes
        self._response_bytes = resources.response_bytes
        self._burst = resources.burst
        self._polls = resources.polls
        self._poller = resources.poller
        self._sent_at_ns: deque[int] = deque()
        self._unsent = 0
        self._received = 0
        self._is_on_loop = False

    def refresh(self) -> None:
        """Store the counters, and send the requests that the budget allows again."""
        super().refresh()
        if self._budget is not None and self._is_on_loop and not self._closed:
            self._request_more(self._burst - len(self._sent_at_ns), perf_counter_ns())

    def close(self) -> None:
        """Stop watching the connection, and close it."""
        self._poller.unwatch(self._fd)
        super().close()

    def _start_io(self) -> None:
        if self._is_alone and self._burst == 1:
            self._socket_thread = SocketThread(self._sock, self._request_in_thread, self._resume, self._lose)
            return
        self._resume()
        self._request_more(self._burst, perf_counter_ns())

    def _resume(self) -> None:
        self._is_on_loop = True
        self._poller.watch(self._fd, self._handler())

    def _handler(self) -> ReadyCallback:
        is_plain = self._burst == 1 and self._budget is None
        return self._make_single_handler() if is_plain else self._on_readable

    def _make_single_handler(self) -> ReadyCallback:
        """Return a callback that takes a whole response and sends the next request.

        It leaves all other cases to `_add_received`. Its variables are in a closure because each response of
        several pairs runs it.
        """
        recv_into, send, buffer, requests = self._sock.recv_into, self._sock.send, self._buffer, self._requests
        request_bytes, response_bytes, sent_at_ns = self._request_bytes, self._response_bytes, self._sent_at_ns
        words, bytes_at, first_at, clock = (
            self._words,
            self._bytes_at,
            self._latency_at - BUCKET_BASE,
            perf_counter_ns,
        )

        def on_readable(_events: int) -> None:
            try:
                count = recv_into(buffer)
            except OSError as error:
                self._handle_error(error)
                return
            now_ns = clock()
            if count != response_bytes or self._received or self._unsent:
                self._add_received(count, now_ns)
                return
            try:
                sent = send(requests)  # first: the other end works while this one counts
            except OSError:  # the next call reports it again
                sent = 0
            took_ns = now_ns - sent_at_ns[0]
            sent_at_ns[0] = now_ns
            shift = took_ns.bit_length() - SIGNIFICANT_BITS
            if MIN_SHIFT <= shift <= MAX_SHIFT:  # bucket_of, without the call
                words[first_at + (shift << SUB_BUCKET_BITS) + (took_ns >> shift)] += 1
            else:
                self._count(took_ns)
            words[bytes_at] += response_bytes
            if sent != request_bytes:
                self._unsent = request_bytes - sent
                self._send_requests()

        return on_readable

    def _request_in_thread(self) -> bool:
        words, bytes_at, latency_at = self._words, self._bytes_at, self._latency_at
        send, clock = self._sock.sendall, perf_counter_ns
        recv_into = polling_receive(self._sock) if self._polls else self._sock.recv_into
        request, buffer, response_bytes = self._requests, self._buffer, self._response_bytes
        budget = self._budget
        if budget is not None and not budget.take_whole(response_bytes):
            return True
        began_ns = clock()
        send(request)
        while self._is_alone:
            received = recv_into(buffer)
            if received != response_bytes and not self._receive_rest(received):
                return False
            now_ns = clock()
            is_last = budget is not None and not budget.take_whole(response_bytes)
            if not is_last:
                send(request)  # first: the other end works while this one counts
            words[latency_at + bucket_of(now_ns - began_ns)] += 1
            words[bytes_at] += response_bytes
            if is_last:
                return True
            began_ns = now_ns
        self._sent_at_ns.append(began_ns)
        return True

    def _receive_rest(self, received: int) -> bool:
        """Receive the rest of a response; return False if the connection ends before it."""
        count = received
        while count and received < self._response_bytes:
            count = self._sock.recv_into(self._buffer)
            received += count
        if received > self._response_bytes:  # an early response would be a transaction of no time
            raise OSError(errno.EPROTO, UNSOLICITED_RESPONSE)
        return bool(count)

    def _request_more(self, number: int, now_ns: int) -> None:
        budget = self._budget
        if budget is not None:
            number = sum(budget.take_whole(self._response_bytes) for _ in range(number))
        for _ in range(number):
            self._sent_at_ns.append(now_ns)
        was_unsent = self._unsent
        self._unsent = was_unsent + number * self._request_bytes
        if not was_unsent:
            self._send_requests()

    def _send_requests(self) -> None:
        try:
            self._unsent -= self._sock.send(self._requests[: self._unsent])
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)
            return
        if self._unsent:
            self._loop.add_writer(self._sock, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._sock)
        self._send_requests()

    def _on_readable(self, _events: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer)
        except OSError as error:
            self._handle_error(error)
            return
        self._add_received(count, perf_counter_ns())

    def _add_received(self, count: int, now_ns: int) -> None:
        if count:
            completed, self._received = divmod(self._received + count, self._response_bytes)
            self._complete(completed, now_ns)
        else:
            self._lose(None)

    def _complete(self, completed: int, now_ns: int) -> None:
        if completed > len(self._sent_at_ns):
            self._end(UNSOLICITED_RESPONSE)
            return
        took_ns = [now_ns - self._sent_at_ns.popleft() for _ in range(completed)]
        # Send first and count then: the other end works meanwhile.
        if completed:
            self._request_more(completed, now_ns)
        for duration_ns in took_ns:
            self._count(duration_ns)
        self._count_bytes(completed)

    def _count_bytes(self, completed: int) -> None:
        self._words[self._bytes_at] += completed * self._response_bytes


class RrResponder(SendingSession):
    """Responds to each whole request. While responses wait for room, it reads no further requests."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._block = memoryview(resources.payload.block)
        self._response = self._block[: resources.response_bytes]
        self._request_bytes = resources.request_bytes
        self._response_bytes = resources.response_bytes
        self._received = 0
        self._unsent = 0
        self._can_block = resources.burst == 1
        self._polls = resources.polls
        self._poller = resources.poller

    def close(self) -> None:
        """Stop watching the connection, and close it."""
        self._poller.unwatch(self._fd)
        super().close()

    def _start_io(self) -> None:
        if self._is_alone and self._can_block:
            self._socket_thread = SocketThread(self._sock, self._respond_in_thread, self._resume, self._lose)
        else:
            self._resume()

    def _resume(self) -> None:
        self._poller.watch(self._fd, self._handler())

    def _handler(self) -> ReadyCallback:
        """Return a callback that responds to one whole request and leaves all other cases to `_add_received`."""
        recv_into, send, buffer, response = self._sock.recv_into, self._sock.send, self._buffer, self._response
        request_bytes, response_bytes = self._request_bytes, self._response_bytes

        def on_readable(_events: int) -> None:
            try:
                count = recv_into(buffer)
            except OSError as error:
                self._handle_error(error)
                return
            if count != request_bytes or self._received:
                self._add_received(count)
                return
            try:
                sent = send(response)
            except OSError:  # the next call reports it again
                sent = 0
            self._handed_over += sent
            if sent != response_bytes:
                self._unsent = response_bytes - sent
                self._poller.watch(self._fd, self._on_writable, for_write=True)

        return on_readable

    def _respond_in_thread(self) -> bool:
        send, block, buffer = self._sock.send, self._block, self._buffer
        recv_into = polling_receive(self._sock) if self._polls else self._sock.recv_into
        request_bytes, response_bytes, response = self._request_bytes, self._response_bytes, self._response
        while self._is_alone:
            received = 0
            while received < request_bytes:
                count = recv_into(buffer)
                if not count:
                    return False
                received += count
            sent = send(response)
            while sent < response_bytes:
                sent += send(block[: response_bytes - sent])
            self._handed_over += sent
        return True

    def _on_readable(self, _events: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer)
        except OSError as error:
            self._handle_error(error)
            return
        self._add_received(count)

    def _add_received(self, count: int) -> None:
        if not count:
            self._lose(None)
            return
        requested, self._received = divmod(self._received + count, self._request_bytes)
        if requested:
            self._unsent = requested * self._response_bytes
            if not self._transmit():
                self._continue_later()

    def _continue_later(self) -> None:
        self._poller.watch(self._fd, self._on_writable, for_write=True)

    def _on_writable(self, _events: int) -> None:
        if self._transmit() and not self._closed:
            self._resume()

    def _transmit(self) -> bool:
        """Send as much as one call takes; return whether all is sent."""
        try:
            sent = self._send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(error)
            return True
        self._handed_over += sent
        self._unsent -= sent
        return not self._unsent

    def _send(self, unsent: int) -> int:
        return self._sock.send(self._block[:unsent])


class FetchRequester(RrRequester):
    """Sends the next request after each whole response; bytes are counted as they arrive."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._flags = socket.MSG_TRUNC if resources.mode is Mode.DISCARD else 0

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread makes a fetch no faster
        """Let payload flow."""
        super().start()

    def _handler(self) -> ReadyCallback:
        return self._on_readable

    def _on_readable(self, _events: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer, 0, self._flags)
        except OSError as error:
            self._handle_error(error)
            return
        if not count:
            self._lose(None)
            return
        self._words[self._bytes_at] += count
        self._received += count
        if self._received >= self._response_bytes:
            completed, self._received = divmod(self._received, self._response_bytes)
            self._complete(completed, perf_counter_ns())

    def _count_bytes(self, completed: int) -> None:
        """Do nothing: the bytes were counted on arrival."""


class FetchResponder(RrResponder):
    """Sends its responses from the payload, by copy or by sendfile."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._payload = resources.payload
        self._is_copied = resources.payload.fd < 0

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread makes a fetch no faster
        """Let payload flow."""
        super().start()

    def _handler(self) -> ReadyCallback:
        return self._on_readable

    def _continue_later(self) -> None:
        if self._pace is None:
            super()._continue_later()
            return
        self._poller.unwatch(self._fd)
        self._loop.call_later(self._pace.wait_ns / SECOND_NS, self._on_writable, 0)

    def _on_writable(self, events: int) -> None:
        if self._closed:
            return
        super()._on_writable(events)
        if self._unsent and not self._closed and self._pace is not None:
            self._continue_later()

    def _send(self, unsent: int) -> int:
        pace = self._pace
        if pace is not None:
            unsent = min(unsent, pace.due(time.monotonic_ns()))
            if not unsent:
                return 0
        sent = self._send_part(unsent)
        if pace is not None:
            pace.take(sent)
        return sent

    def _send_part(self, unsent: int) -> int:
        if self._is_copied:
            return super()._send(unsent)
        return os.sendfile(self._fd, self._payload.fd, 0, min(unsent, self._payload.size_bytes))
