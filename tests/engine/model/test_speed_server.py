"""Addresses of LibreSpeed and NDT7 servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.speed_server import SpeedProtocol, SpeedServer, is_speed_address, split_speed_address

LIBRESPEED, NDT7 = SpeedProtocol.LIBRESPEED, SpeedProtocol.NDT7


@pytest.mark.parametrize(
    ("text", "shown", "server", "port"),
    [
        ("librespeed://a", "librespeed://a:80", SpeedServer(LIBRESPEED), 80),
        ("LibreSpeed://a/", "librespeed://a:80", SpeedServer(LIBRESPEED), 80),
        ("librespeed://a:8989/x/y/", "librespeed://a:8989/x/y", SpeedServer(LIBRESPEED, path="/x/y/"), 8_989),
        ("librespeeds://a", "librespeeds://a:443", SpeedServer(LIBRESPEED, is_tls=True), 443),
        (
            "librespeed://[2001:db8::1]/s",
            "librespeed://[2001:db8::1]:80/s",
            SpeedServer(LIBRESPEED, path="/s/"),
            80,
        ),
        ("ndt7://a:8080", "ndt7://a:8080", SpeedServer(NDT7), 8_080),
        ("ndt7s://a/", "ndt7s://a:443", SpeedServer(NDT7, is_tls=True), 443),
    ],
)
def test_an_address_names_protocol_tls_and_folder(text: str, shown: str, server: SpeedServer, port: int) -> None:
    """What is shown can be typed in again."""
    peer = Peer.parse(text)
    assert (peer.speed, peer.port, str(peer)) == (server, port, shown)
    assert Peer.parse(shown) == peer
    assert peer.is_foreign
    assert is_speed_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *("librespeed://", "librespeed:///x", "librespeed://u@a", "librespeed://a/x y", "librespeed://a/x?y=1"),
        *("librespeed://a/\r\nX: y", "librespeed://a/é", "librespeed://a/" + "x" * 201, "librespeed://loopback"),
        *("ndt7://a/path", "ndt7://a:0", "ndt7://a:99999", "ndt7://ssh://a", "ndt7://"),
    ],
)
def test_an_address_that_cannot_be_is_refused_in_words(text: str) -> None:
    """Nothing that ends a line of HTTP is in a path."""
    with pytest.raises(PlanError) as caught:
        Peer.parse(text)
    assert str(caught.value).isprintable()


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_an_error(text: str) -> None:
    """A path has no white space and no control character."""
    assert split_speed_address(text) is None or is_speed_address(text)
    try:
        peer = Peer.parse(f"librespeed://h/{text}")
    except PlanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most texts raise, a few do not
    else:
        assert peer.speed is not None
        assert peer.speed.path.isprintable()
        assert peer.speed.path.isascii()
        assert " " not in peer.speed.path
