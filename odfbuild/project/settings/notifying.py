"""Whom the machine tells of failures: `notify` of machine.yaml.

A setting of the machine, never of a project: it names programs, and addresses that get messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.values import Value

Event = Literal["failure", "stale", "late", "drift", "recovery"]
Form = Literal["json", "slack", "teams"]

_Webhook = Annotated[
    str,
    Fits(
        pattern=r"^(https?://.|\$\{\{)",
        examples=["https://example.org/alerts", "${{ env.SLACK_WEBHOOK }}"],
        description="Address that gets a POST request; may hold ${{ env.NAME }}",
    ),
]


class Notify(Value, kw_only=True):
    """Who is told what of datasets whose name matches: by a `webhook`, or by a `command`."""

    match: Patterns = setting(("*",))
    on: tuple[Event, ...] = setting(
        ("failure", "stale", "recovery"), "What is told (default: failure, stale, recovery)"
    )
    webhook: _Webhook | None = setting(None)
    form: Form = setting("json", "What the webhook takes: json, or a message of slack or teams")
    command: tuple[Name, ...] = setting(
        (), "Program and its arguments; it gets the message as JSON on standard input"
    )

    @property
    def label(self) -> str:
        """What messages call it; never with a secret in it."""
        return self.webhook or " ".join(self.command)


def wrong_entries(entries: Sequence[Notify]) -> list[int]:
    """The numbers of entries that name no way to tell, or two."""
    return [n for n, each in enumerate(entries) if bool(each.webhook) == bool(each.command)]
