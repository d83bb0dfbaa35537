"""The name of a client; its tests are in test_nq_service.py and test_nq_connection.py."""

import pytest

pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")

from linkgauge.tui.endpoint.nq.quality_client import describe_program


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("networkQuality/194.80.3 CFNetwork/1404.0.5 Darwin/22.3.0", "networkQuality 194.80.3"),
        ("goresponsiveness/", "networkQuality client goresponsiveness"),
        ("curl/7.88.1", "networkQuality client curl 7.88.1"),
        ("", "networkQuality client"),
        ("\x1b[31m/1", "networkQuality client"),
        ("x" * 100 + "/1", "networkQuality client"),
        ("evil\n/1", "networkQuality client"),
    ],
)
def test_a_client_is_named_by_known_characters_alone(header: str, words: str) -> None:
    """The name goes to the log, to the screen and to the run log."""
    assert describe_program(header) == words
