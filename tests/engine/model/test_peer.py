"""`ssh://…` as text: what it may be, and that none of it can become an option of ssh's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import Peer, SshSettings


@pytest.mark.parametrize(
    ("text", "host", "ssh"),
    [
        ("ssh://db-02", "db-02", SshSettings()),
        ("ssh://me@db-02:2222", "db-02", SshSettings("me", 2222)),
        ("ssh://[fe80::1%eth0]:22", "fe80::1%eth0", SshSettings(port=22)),
        (" ssh://10.0.0.1/ ", "10.0.0.1", SshSettings()),
        ("ssh://loopback", "loopback", SshSettings()),
    ],
)
def test_an_address_is_a_host_and_how_to_log_in(text: str, host: str, ssh: SshSettings) -> None:
    """The port is ssh's; written out again it is the same place."""
    peer = Peer.parse(text)
    assert (peer.host, peer.ssh) == (host, ssh)
    assert Peer.parse(str(peer)) == peer
    assert not peer.is_loopback


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://me@",
        "ssh://-oProxyCommand=x",
        "ssh://-lroot@db-02",
        "ssh://me:secret@db-02",
        "ssh://db-02:0",
        "ssh://db-02:65536",
        "ssh://db-02:http",
        "ssh://db-02/tmp",
        "ssh://[::1",
        "ssh://[::1]22",
        "ssh://[-oX]",
        "ssh://a b",
        "ssh://a\nb",
    ],
)
def test_what_is_no_address_is_a_plan_error(text: str) -> None:
    """Options in disguise and passwords among it."""
    with pytest.raises(PlanError):
        Peer.parse(text)


@given(st.text(max_size=30))
def test_no_host_and_no_user_begins_with_a_dash(text: str) -> None:
    """Whatever is typed."""
    try:
        peer = Peer.parse(f"ssh://{text}")
    except PlanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most texts raise, a few do not
    else:
        assert peer.ssh is not None
        assert not peer.host.startswith("-")
        assert not (peer.ssh.user or "").startswith("-")
