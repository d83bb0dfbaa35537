"""The values of a watch are checked when it is made."""

from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.watch.watch_plan import Notify, Timing, WatchedPeer, WatchPlan

TEST = Plan(duration_ns=SECOND_NS)


def peer(**changes: Any) -> WatchedPeer:
    """Return a watched peer."""
    return WatchedPeer(**{"name": "db-1", "peer": LOOPBACK, "plan": TEST} | changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: peer(name=""), "name"),
        (lambda: peer(name="a b"), "letters, digits"),
        (lambda: peer(name="x" * 65), "up to 64"),
        (lambda: peer(plan=Plan(duration_ns=None)), "give a duration"),
        (lambda: peer(budget_bytes=-1), "0 bytes or more"),
        (lambda: Timing(check_every_ns=0), "1 s to 366 days"),
        (lambda: Timing(jitter=0.6), "0 to 0.5"),
        (lambda: Timing(retests=11), "0 to 10"),
        (lambda: Timing(retest_after_ns=-1), "0 s to 366 days"),
        (lambda: WatchPlan("office", ()), "1 to 256 peers"),
        (lambda: WatchPlan("office", (peer(), peer())), "name of its own"),
    ],
)
def test_a_wrong_value_is_refused_with_what_to_give_instead(make: Callable[[], object], message: str) -> None:
    """Each range."""
    with pytest.raises(PlanError, match=message):
        make()


def test_a_watch_knows_its_peers_and_the_group_of_its_runs() -> None:
    """By their names."""
    plan = WatchPlan("office", (peer(), peer(name="db-2")))
    assert plan.group == "watch-office"
    assert plan.find("db-2") is plan.peers[1]
    assert plan.find("db-3") is None


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host/x", "https://", "nonsense", "http://[::1"])
def test_only_a_web_address_can_be_a_webhook(address: str) -> None:
    """Before the watch begins."""
    with pytest.raises(PlanError, match="webhook"):
        Notify(webhook=address)
    assert Notify(webhook="https://alerts.example.net:8443/x").webhook


@pytest.mark.parametrize("address", ["http://ops:secret@host/x", "https://ops@host/", "http://:secret@host"])
def test_a_password_in_the_address_of_a_webhook_is_refused_and_not_shown(address: str) -> None:
    """Nobody could be told by it: urllib takes it for a part of the host's name."""
    with pytest.raises(PlanError, match=r"name or password is invalid; .* headers_file") as caught:
        Notify(webhook=address)
    assert "secret" not in str(caught.value)
