"""The formats of notifications: what a webhook's receiver or a mail reader expects of an event. Pure.

Sources: incoming webhooks of Slack and Mattermost (a JSON object with `text`); Alertmanager's API v2 (POST of an
array to /api/v2/alerts, OpenAPI file of its repository); ntfy's headers (docs.ntfy.sh/publish); RFC 5322 for mail.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from ....watch.event_codec import event_line
from ....watch.events import ChangeFound, CheckEnded, CheckVerdict, News, PathChanged
from ....watch.watch_plan import NotifyFormat, WatchPlan
from ..watch_words import event_words

# Alertmanager ends an alert that nobody renews. A watch renews it at each repeat only, so that it gets long enough.
_ALERT_LASTS: Final = timedelta(days=7)
_SHIFT_LASTS: Final = timedelta(hours=1)
_SEVERITIES: Final[Mapping[CheckVerdict, str]] = {CheckVerdict.FAILED: "critical", CheckVerdict.BELOW: "warning"}
_NTFY_OF_PATH: Final = ("default", "twisted_rightwards_arrows")
_NTFY: Final[Mapping[bool, tuple[str, str]]] = {True: ("high", "warning"), False: ("default", "white_check_mark")}


def news_document(plan: WatchPlan, news: News) -> dict[str, Any]:
    """Return the JSON of a notification: the event as in `--json-stream`, the watch's name, and a sentence."""
    return {**event_line(news), "watch": plan.name, "text": event_words(news, plan)}


def webhook_request(plan: WatchPlan, news: News) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers that the plan's webhook gets."""
    if plan.notify.format is NotifyFormat.NTFY:
        priority, tag = _NTFY_OF_PATH if isinstance(news, PathChanged) else _NTFY[_is_bad(news)]
        headers = {"Content-Type": "text/plain; charset=utf-8", "Title": _title(plan, news)}
        return event_words(news, plan).encode(), {**headers, "Priority": priority, "Tags": tag}
    match plan.notify.format:
        case NotifyFormat.SLACK:
            document: object = {"text": f"{_title(plan, news)}\n{event_words(news, plan)}"}
        case NotifyFormat.ALERTMANAGER:
            document = _alerts(plan, news)
        case _:
            document = news_document(plan, news)
    return json.dumps(document, allow_nan=False).encode(), {"Content-Type": "application/json"}


def mail(plan: WatchPlan, news: News) -> bytes:
    """Return the message that sendmail gets, with the plan's addresses in To."""
    message = EmailMessage(policy=SMTP)
    message["Subject"] = _title(plan, news)
    message["To"] = ", ".join(plan.notify.email)
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer from an absent reader
    message.set_content(f"{event_words(news, plan)}\n\n{json.dumps(news_document(plan, news), indent=2)}\n")
    return message.as_bytes(policy=SMTP.clone(linesep="\n"))  # sendmail takes the host's line ends


def _title(plan: WatchPlan, news: News) -> str:
    """Return a line of ASCII: names of watches and peers have nothing else."""
    if isinstance(news, ChangeFound):
        state = "has become worse" if news.is_worse else "has become better"
    elif isinstance(news, PathChanged):
        state = f"has another path {news.after.direction}"
    else:
        state = {
            CheckVerdict.FAILED: "failed",
            CheckVerdict.BELOW: "is below its mark",
            CheckVerdict.GOOD: "is good again",
        }[news.result.verdict]
    return f"linkgauge {plan.name}: {news.peer} {state}"


def _is_bad(news: ChangeFound | CheckEnded) -> bool:
    return news.is_worse if isinstance(news, ChangeFound) else news.result.verdict is not CheckVerdict.GOOD


def _alerts(plan: WatchPlan, news: News) -> list[dict[str, Any]]:
    """Return the alerts of an event: one for each severity of a verdict, since the other one ends with it."""
    labels = {"watch": plan.name, "peer": news.peer}
    if isinstance(news, ChangeFound):
        labels |= {"alertname": "LinkgaugeLevelWorse", "metric": news.metric.value, "severity": "warning"}
        return [_alert(plan, news, labels, _SHIFT_LASTS if news.is_worse else None)]
    if isinstance(news, PathChanged):
        labels |= {"alertname": "LinkgaugePathChanged", "direction": news.after.direction.value, "severity": "info"}
        return [_alert(plan, news, labels, _SHIFT_LASTS)]
    labels |= {"alertname": "LinkgaugePeer"}
    return [
        _alert(
            plan, news, {**labels, "severity": severity}, _ALERT_LASTS if news.result.verdict is verdict else None
        )
        for verdict, severity in _SEVERITIES.items()
    ]


def _alert(plan: WatchPlan, news: News, labels: dict[str, str], lasts: timedelta | None) -> dict[str, Any]:
    """Return an alert that begins with the event, or ends with it (`lasts` is None)."""
    at = datetime.fromtimestamp(news.at_s, UTC)
    text = event_words(news, plan)
    times = (
        {"endsAt": at.isoformat()}
        if lasts is None
        else {
            "startsAt": at.isoformat(),
            "endsAt": (at + lasts).isoformat(),
        }
    )
    return {"labels": labels, "annotations": {"summary": _title(plan, news), "description": text}, **times}
