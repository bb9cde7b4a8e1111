"""An alert as text, as JSON, and as a message of Slack and of Teams. Pure."""

from __future__ import annotations

from typing import Any

from odfbuild.inspect.alerts import Alert
from odfbuild.plan.refusal import as_data
from odfbuild.project.settings.notifying import Form
from odfbuild.report.forms.visible import visible
from odfbuild.wording import count

_LISTED = 20
"""Up to so many problems are told one by one."""
_WORDS = {
    "failure": "failed",
    "stale": "is stale",
    "late": "has late records",
    "drift": "has other columns",
}
_RECOVERED = {"failure": "works again", "stale": "is fresh again"}


def alert_text(alert: Alert) -> str:
    """A line for each problem and each dataset that has recovered."""
    lines = [
        f"{each.dataset} {_WORDS[each.event]}: {each.message}"
        + (f" ({each.code})" if each.code else "")
        for each in alert.problems
    ]
    lines += [f"{dataset} {_RECOVERED[event]}" for event, dataset in alert.recovered]
    more = len(lines) - _LISTED
    shown = [visible(line) for line in lines[:_LISTED]]
    rest = [f"… and {more:,} more"] if more > 0 else []
    return "\n".join([f"odfbuild, project {alert.project}:", *shown, *rest])


def alert_subject(alert: Alert) -> str:
    """One line: how many problems are new, and how many datasets have recovered."""
    told = [count(len(alert.problems), "problem")] if alert.problems else []
    told += [f"{count(len(alert.recovered), 'dataset')} recovered"] if alert.recovered else []
    return f"odfbuild, project {visible(alert.project)}: {', '.join(told)}"


def alert_to_data(alert: Alert) -> dict[str, Any]:
    """The alert as plain values, ready for `json.dumps`."""
    return {
        "project": alert.project,
        "text": alert_text(alert),
        "problems": as_data(alert.problems),
        "recovered": [{"event": event, "dataset": name} for event, name in alert.recovered],
    }


def alert_in(form: Form, alert: Alert) -> dict[str, Any]:
    """What a webhook takes. Source: Slack, "Incoming webhooks"; Teams, "Adaptive Cards"."""
    if form == "json":
        return alert_to_data(alert)
    text = alert_text(alert)
    if form == "slack":
        # Three signs have a meaning in messages; names of the data must not make links.
        plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": plain}
    blocks = [{"type": "TextBlock", "text": line, "wrap": True} for line in text.split("\n")]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
