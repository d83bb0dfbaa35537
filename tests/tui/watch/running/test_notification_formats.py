"""The bodies of webhooks and mails, as their receivers' documents describe them."""

import email
import email.policy
import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.watch.running.notification_formats import mail, news_document, webhook_request
from linkgauge.watch.events import (
    ChangeFound,
    CheckEnded,
    CheckResult,
    CheckVerdict,
    Level,
    Metric,
    News,
    PathChanged,
    Route,
)
from linkgauge.watch.watch_plan import Notify, NotifyFormat, WatchedPeer, WatchPlan

LEVEL: Final = Level(94e6, 93e6, 95e6, 20)
WORSE: Final = ChangeFound(1e9, "db-1", Metric.GOODPUT_BIT_S, 1e9 - 60, LEVEL, replace(LEVEL, median=5e7), True)
FAILED: Final = CheckEnded(1e9, "db-1", 1e9 - 60, 1, CheckResult(CheckVerdict.FAILED), decides=True)
BELOW: Final = replace(FAILED, result=CheckResult(CheckVerdict.BELOW, percent=60.0))
GOOD: Final = replace(FAILED, result=CheckResult(CheckVerdict.GOOD, percent=99.0))
REROUTED: Final = PathChanged(
    1e9, "db-1", *(Route(Direction.IN, ((each,),)) for each in ("192.0.2.1", "192.0.2.2"))
)
ALL: Final[tuple[News, ...]] = (WORSE, replace(WORSE, is_worse=False), REROUTED, FAILED, BELOW, GOOD)


def plan_for(kind: NotifyFormat) -> WatchPlan:
    """Return a watch whose webhook expects a format."""
    notify = Notify(webhook="https://example.net/hook", format=kind, email=("ops@example.net", "night@example.net"))
    return WatchPlan("office", (WatchedPeer("db-1", LOOPBACK, Plan()),), notify)


def alerts_of(news: News) -> list[dict[str, Any]]:
    """Return what Alertmanager gets."""
    body, headers = webhook_request(plan_for(NotifyFormat.ALERTMANAGER), news)
    assert headers == {"Content-Type": "application/json"}
    return list(json.loads(body))


@pytest.mark.parametrize("news", ALL)
def test_each_format_carries_the_sentence_of_the_event(news: News) -> None:
    """In the place where its receiver shows it."""
    text = news_document(plan_for(NotifyFormat.JSON), news)["text"]
    slack, _ = webhook_request(plan_for(NotifyFormat.SLACK), news)
    ntfy, headers = webhook_request(plan_for(NotifyFormat.NTFY), news)
    # A chat has no subject: its text alone says of which watch it is, and that a peer is good again.
    assert json.loads(slack) == {"text": f"{headers['Title']}\n{text}"}
    assert ntfy.decode() == text
    assert headers["Title"].isascii()
    assert {alert["annotations"]["description"] for alert in alerts_of(news)} == {text}
    message = email.message_from_bytes(mail(plan_for(NotifyFormat.JSON), news), policy=email.policy.default)
    assert message["Subject"] == headers["Title"]
    assert message["To"] == "ops@example.net, night@example.net"
    assert text in message.get_content()


def test_an_alert_ends_under_the_labels_with_which_it_began() -> None:
    """Alertmanager knows an alert by its labels: of failed and below, each verdict ends the other."""
    lasting = {}
    for news in (FAILED, BELOW, GOOD):
        alerts = alerts_of(news)
        lasting[news.result.verdict] = [a["labels"]["severity"] for a in alerts if "startsAt" in a]
        assert sorted(a["labels"]["severity"] for a in alerts) == ["critical", "warning"]
        assert {(a["labels"]["alertname"], a["labels"]["peer"]) for a in alerts} == {("LinkgaugePeer", "db-1")}
        for alert in alerts:
            ends, event = datetime.fromisoformat(alert["endsAt"]), datetime.fromtimestamp(1e9).astimezone()
            assert (ends > event) == ("startsAt" in alert)
    assert lasting == {CheckVerdict.FAILED: ["critical"], CheckVerdict.BELOW: ["warning"], CheckVerdict.GOOD: []}
    (worse,), (better,) = alerts_of(WORSE), alerts_of(replace(WORSE, is_worse=False))
    assert worse["labels"] == better["labels"]
    assert "startsAt" not in better
