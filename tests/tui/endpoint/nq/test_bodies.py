"""The bodies that a connection has yet to send, between two ends of the protocol in memory."""

import pytest

pytest.importorskip("h2", reason="the extra linkgauge[nq] is not installed")

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event
from h2.settings import SettingCodes, Settings
from linkgauge.tui.endpoint.nq.bodies import Bodies


class Pair:
    """A server with requests on streams 1, 3, 5 and so on, and its client with a window."""

    def __init__(self, requests: int, window: int = 65_535) -> None:
        self.server = H2Connection(H2Configuration(client_side=False))
        self.client = H2Connection(H2Configuration(client_side=True))
        self.client.local_settings = Settings(
            client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self.client.initiate_connection()
        self.server.initiate_connection()
        self.exchange()
        headers = [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "a")]
        for number in range(requests):
            self.client.send_headers(1 + 2 * number, headers, end_stream=True)
        self.exchange()
        for number in range(requests):
            self.server.send_headers(1 + 2 * number, [(":status", "200")])
        self.bodies = Bodies(self.server)

    def exchange(self) -> list[Event]:
        """Let each end read what the other has sent; return the client's events."""
        self.server.receive_data(self.client.data_to_send())
        events = self.client.receive_data(self.server.data_to_send())
        self.server.receive_data(self.client.data_to_send())
        return events

    def data(self) -> list[tuple[int, int]]:
        """Return the streams and sizes of the data that the client gets."""
        return [(event.stream_id, len(event.data)) for event in self.exchange() if isinstance(event, DataReceived)]


def test_long_bodies_take_turns_frame_by_frame_up_to_the_window() -> None:
    """The connection's window of 65,535 bytes is for all of them."""
    pair = Pair(2)
    for stream in (1, 3):
        pair.bodies.add_long(stream, 1 << 30)
    sent, ended = pair.bodies.send_long(1 << 20)
    assert (sent, ended) == (65_535, [])
    assert pair.data() == [(1, 16_384), (3, 16_384), (1, 16_384), (3, 16_383)]
    assert pair.bodies.send_long(1 << 20) == (0, [])


def test_a_long_body_ends() -> None:
    """With as many bytes as its headers have promised."""
    pair = Pair(1)
    pair.bodies.add_long(1, 20_000)
    assert pair.bodies.send_long(1 << 20) == (20_000, [1])
    assert sum(size for _, size in pair.data()) == 20_000
    assert pair.bodies.long == 0


@pytest.mark.parametrize("window", [0, 1, 1_023])
def test_a_window_of_a_few_bytes_gets_nothing_of_a_long_body(window: int) -> None:
    """Until it has grown to a kilobyte: otherwise each byte would cost a packet."""
    pair = Pair(1, window)
    pair.bodies.add_long(1, 1 << 30)
    assert pair.bodies.send_long(1 << 20) == (0, [])
    pair.client.increment_flow_control_window(1_024 - window, 1)
    pair.exchange()
    assert pair.bodies.send_long(1 << 20) == (1_024, [])


def test_a_short_body_goes_as_the_window_allows_and_is_whole() -> None:
    """A byte needs a window of one byte; a page goes in pieces."""
    page = bytes(range(256)) * 100
    pair = Pair(2, 1)
    pair.bodies.add_short(1, b"x")
    pair.bodies.add_short(3, page)
    assert pair.bodies.send_short() == [1]
    pair.client.increment_flow_control_window(len(page), 3)
    received = [event.data for event in pair.exchange() if isinstance(event, DataReceived)]
    while len(b"".join(received)) < 1 + len(page):
        pair.bodies.send_short()
        received += [event.data for event in pair.exchange() if isinstance(event, DataReceived)]
    assert b"".join(received[1:]) == page


def test_a_short_body_of_several_frames_goes_at_once_if_the_window_allows() -> None:
    """The client may say nothing more: what is left would wait for ever."""
    pair = Pair(2)
    pair.bodies.add_short(1, bytes(40_000))
    pair.bodies.add_short(3, b"x")
    assert pair.bodies.send_short() == [1, 3]
    assert pair.data() == [(1, 16_384), (1, 16_384), (1, 7_232), (3, 1)]


def test_a_body_that_was_withdrawn_is_dropped() -> None:
    """The others go on."""
    pair = Pair(2)
    for stream in (1, 3):
        pair.bodies.add_long(stream, 1 << 30)
    pair.bodies.remove(1)
    pair.bodies.send_long(1)
    assert [stream for stream, _ in pair.data()] == [3]
