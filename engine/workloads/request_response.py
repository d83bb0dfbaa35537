"""The rr workload: requests and answers of fixed sizes, over and over on one connection.

Neither carries a header: both ends know the sizes, and TCP keeps the order. An answer's end is the transaction's.

A pair that has its worker to itself, with one request in flight, runs in a thread that blocks in recv(2): two
system calls for each transaction and end, where a turn of the event loop makes three. Measured on loopback with
200/1000 bytes, that is 66,000 transactions a second instead of 55,000, where qperf makes 67,000. Threads of
several pairs would fight for the interpreter's lock (10 pairs: 78,000 with one in a thread, 110,000 with none),
so a pair goes over to the worker's readiness (readiness.py) as soon as it has company.
"""

import errno
import socket
from collections import deque
from time import perf_counter_ns

from ..model.latency_histogram import (
    BUCKET_BASE,
    MAX_SHIFT,
    MIN_SHIFT,
    SIGNIFICANT_BITS,
    SUB_BUCKET_BITS,
    bucket_of,
)
from .readiness import ReadyCallback
from .session import ReceivingSession, SendingSession, SessionContext, WorkerResources
from .thread_io import SocketThread

UNSOLICITED_RESPONSE = "the other end answered what it was not asked"


class RrRequester(ReceivingSession):
    """Keeps `burst` requests in flight, and counts each answer by how long it took."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._requests = resources.requests
        self._request_bytes = resources.request_bytes
        self._response_bytes = resources.response_bytes
        self._burst = resources.burst
        self._readiness = resources.poller
        self._asked_at: deque[int] = deque()
        self._unsent = 0
        self._got = 0

    def close(self) -> None:
        """Take the connection out of the readiness, and close."""
        self._readiness.unwatch(self._fd)
        super().close()

    def _watch(self) -> None:
        if self._is_alone and self._burst == 1:
            self._blocking = SocketThread(self._sock, self._ask_alone, self._resume, self._lose)
            return
        self._resume()
        self._ask(self._burst, perf_counter_ns())

    def _resume(self) -> None:
        self._readiness.watch(self._fd, self._handler())

    def _handler(self) -> ReadyCallback:
        return self._one_by_one() if self._burst == 1 else self._pull

    def _one_by_one(self) -> ReadyCallback:
        """Return what takes a whole answer and asks again; what is anything else is left to the rest of this.

        It has in its closure what it needs, for each answer of several pairs goes through here.
        """
        recv_into, send, buffer, requests = self._sock.recv_into, self._sock.send, self._buffer, self._requests
        request_bytes, response_bytes, asked_at = self._request_bytes, self._response_bytes, self._asked_at
        words, bytes_at, first_at, clock = (
            self._words,
            self._bytes_at,
            self._latency_at - BUCKET_BASE,
            perf_counter_ns,
        )

        def pull(_what: int) -> None:
            try:
                count = recv_into(buffer)
            except OSError as error:
                self._failed(error)
                return
            now_ns = clock()
            if count != response_bytes or self._got or self._unsent:
                self._pulled(count, now_ns)
                return
            try:
                sent = send(requests)  # first: the other end is at work while this one counts
            except OSError:  # whatever it is, the next try meets it again
                sent = 0
            took_ns = now_ns - asked_at[0]
            asked_at[0] = now_ns
            shift = took_ns.bit_length() - SIGNIFICANT_BITS
            if MIN_SHIFT <= shift <= MAX_SHIFT:  # bucket_of, without the call
                words[first_at + (shift << SUB_BUCKET_BITS) + (took_ns >> shift)] += 1
            else:
                self._count(took_ns)
            words[bytes_at] += response_bytes
            if sent != request_bytes:
                self._unsent = request_bytes - sent
                self._push()

        return pull

    def _ask_alone(self) -> bool:
        words, bytes_at, latency_at = self._words, self._bytes_at, self._latency_at
        send, recv_into, clock = self._sock.sendall, self._sock.recv_into, perf_counter_ns
        request, buffer, response_bytes = self._requests, self._buffer, self._response_bytes
        began_ns = clock()
        send(request)
        while self._is_alone:
            got = recv_into(buffer)
            if got != response_bytes and not self._is_rest_there(got):
                return False
            now_ns = clock()
            send(request)  # first: the other end is at work while this one counts
            words[latency_at + bucket_of(now_ns - began_ns)] += 1
            words[bytes_at] += response_bytes
            began_ns = now_ns
        self._asked_at.append(began_ns)
        return True

    def _is_rest_there(self, got: int) -> bool:
        """Wait for what is missing of an answer; return False where the connection ends before."""
        last = got
        while last and got < self._response_bytes:
            last = self._sock.recv_into(self._buffer)
            got += last
        if got > self._response_bytes:  # what came before it was asked for would be a transaction of no time
            raise OSError(errno.EPROTO, UNSOLICITED_RESPONSE)
        return bool(last)

    def _ask(self, number: int, now_ns: int) -> None:
        for _ in range(number):
            self._asked_at.append(now_ns)
        waiting = self._unsent
        self._unsent = waiting + number * self._request_bytes
        if not waiting:
            self._push()

    def _push(self) -> None:
        try:
            self._unsent -= self._sock.send(self._requests[: self._unsent])
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)
            return
        if self._unsent:
            self._loop.add_writer(self._sock, self._push_rest)

    def _push_rest(self) -> None:
        self._loop.remove_writer(self._sock)
        self._push()

    def _pull(self, _what: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer)
        except OSError as error:
            self._failed(error)
            return
        self._pulled(count, perf_counter_ns())

    def _pulled(self, count: int, now_ns: int) -> None:
        if count:
            answered, self._got = divmod(self._got + count, self._response_bytes)
            self._answered(answered, now_ns)
        else:
            self._lose(None)

    def _answered(self, answered: int, now_ns: int) -> None:
        if answered > len(self._asked_at):
            self._lose_saying(UNSOLICITED_RESPONSE)
            return
        took_ns = [now_ns - self._asked_at.popleft() for _ in range(answered)]
        # Ask first and count then: the other end is at work meanwhile.
        if answered:
            self._ask(answered, now_ns)
        for one_ns in took_ns:
            self._count(one_ns)
        self._counted(answered)

    def _counted(self, answered: int) -> None:
        self._words[self._bytes_at] += answered * self._response_bytes


class RrResponder(SendingSession):
    """Answers each request once it is whole. While answers wait for room it reads no further requests."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._block = memoryview(resources.payload.block)
        self._first = self._block[: resources.response_bytes]
        self._request_bytes = resources.request_bytes
        self._response_bytes = resources.response_bytes
        self._got = 0
        self._owed = 0
        self._can_block = resources.burst == 1
        self._readiness = resources.poller

    def close(self) -> None:
        """Take the connection out of the readiness, and close."""
        self._readiness.unwatch(self._fd)
        super().close()

    def _watch(self) -> None:
        if self._is_alone and self._can_block:
            self._blocking = SocketThread(self._sock, self._answer_alone, self._resume, self._lose)
        else:
            self._resume()

    def _resume(self) -> None:
        self._readiness.watch(self._fd, self._handler())

    def _handler(self) -> ReadyCallback:
        return self._one_by_one()

    def _one_by_one(self) -> ReadyCallback:
        """Return what answers one whole request; what is anything else is left to the rest of this."""
        recv_into, send, buffer, first = self._sock.recv_into, self._sock.send, self._buffer, self._first
        request_bytes, response_bytes = self._request_bytes, self._response_bytes

        def pull(_what: int) -> None:
            try:
                count = recv_into(buffer)
            except OSError as error:
                self._failed(error)
                return
            if count != request_bytes or self._got:
                self._pulled(count)
                return
            try:
                sent = send(first)
            except OSError:  # whatever it is, the next try meets it again
                sent = 0
            self._handed_over += sent
            if sent != response_bytes:
                self._owed = response_bytes - sent
                self._readiness.watch(self._fd, self._push_rest, for_write=True)

        return pull

    def _answer_alone(self) -> bool:
        send, recv_into, block, buffer = self._sock.send, self._sock.recv_into, self._block, self._buffer
        request_bytes, response_bytes, first = self._request_bytes, self._response_bytes, self._first
        while self._is_alone:
            got = 0
            while got < request_bytes:
                count = recv_into(buffer)
                if not count:
                    return False
                got += count
            sent = send(first)
            while sent < response_bytes:
                sent += send(block[: response_bytes - sent])
            self._handed_over += sent
        return True

    def _pull(self, _what: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer)
        except OSError as error:
            self._failed(error)
            return
        self._pulled(count)

    def _pulled(self, count: int) -> None:
        if not count:
            self._lose(None)
            return
        asked, self._got = divmod(self._got + count, self._request_bytes)
        if asked:
            self._owed = asked * self._response_bytes
            if not self._transmit():
                self._readiness.watch(self._fd, self._push_rest, for_write=True)

    def _push_rest(self, _what: int) -> None:
        if self._transmit() and not self._closed:
            self._resume()

    def _transmit(self) -> bool:
        """Send as much as one call takes; return whether nothing is left to send."""
        try:
            sent = self._send(self._owed)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(error)
            return True
        self._handed_over += sent
        self._owed -= sent
        return not self._owed

    def _send(self, owed: int) -> int:
        return self._sock.send(self._block[:owed])
