"""Why a session was lost: the end that gave it up knows more than the one that sees it closed."""

from linkgauge.engine.protocol.session_failure import CLOSED_BY_PEER, SessionFailure


def test_the_first_lost_session_is_reported_with_the_reason_of_the_end_that_knows_it() -> None:
    """That it was closed is heard of first as often as not; what happens to others then is no reason."""
    loss = SessionFailure()
    assert not loss
    loss.record("out", 2, 1, CLOSED_BY_PEER)
    assert loss
    assert str(loss) == "session 2 out was lost: closed by the other end"
    loss.record("out", 1, 1, "reset")
    loss.record("out", 2, 0, "another connection")
    assert str(loss).endswith(CLOSED_BY_PEER)
    loss.record("out", 2, 1, "no port is left")
    loss.record("out", 2, 1, CLOSED_BY_PEER)
    loss.record("out", 2, 1, "another reason")
    assert str(loss) == "session 2 out was lost: no port is left"
