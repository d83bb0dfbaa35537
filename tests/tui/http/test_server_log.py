"""What aiohttp logs goes to developers; the program that serves hears of it in a line."""

import logging

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[web] is not installed")

from aiohttp.http import HttpProcessingError  # noqa: E402
from linkgauge.tui.http.server_log import ServerLog  # noqa: E402


@pytest.mark.parametrize(
    ("error", "malformed", "failures"),
    [
        (HttpProcessingError(message="x" * 9_000), ["192.0.2.1"], []),
        (ConnectionResetError(), [], []),
        (aiohttp.web.RequestPayloadError(), [], []),
        (KeyError("secret"), [], ["a request failed: KeyError"]),
        (None, [], []),
    ],
)
def test_each_error_is_told_to_whom_it_concerns_and_has_no_text_of_the_client(
    error: BaseException | None, malformed: list[str], failures: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """None of them is more than DEBUG."""
    told: tuple[list[str], list[str]] = [], []
    log = ServerLog(logging.getLogger("linkgauge.test"), told[0].append, told[1].append)
    with caplog.at_level(logging.DEBUG):
        log.error("Error handling request from %s", "192.0.2.1", exc_info=error)
    assert told == (malformed, failures)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_an_address_has_the_spelling_of_the_other_lines() -> None:
    """A socket for both families writes an IPv4 address as IPv6; the same client would be two in the log."""
    told: list[str] = []
    log = ServerLog(logging.getLogger("linkgauge.test"), told.append, told.append)
    for address in ("::ffff:192.0.2.1", "2001:db8::1"):
        log.error("Error handling request from %s", address, exc_info=HttpProcessingError())
    assert told == ["192.0.2.1", "2001:db8::1"]
