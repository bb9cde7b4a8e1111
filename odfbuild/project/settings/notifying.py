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


_Server = Annotated[
    str,
    Fits(
        pattern=r"^smtps?://.",
        examples=["smtps://user:${{ env.SMTP_PASSWORD }}@mail.example.org"],
        description="Address of the mail server: smtps:// (TLS, port 465) or smtp:// (STARTTLS, "
        "port 587); may hold ${{ env.NAME }}",
    ),
]


class Notify(Value, kw_only=True):
    """Who is told what of datasets whose name matches: a `webhook`, a `command`, or by `email`."""

    match: Patterns = setting(("*",))
    on: tuple[Event, ...] = setting(
        ("failure", "stale", "recovery"), "What is told (default: failure, stale, recovery)"
    )
    webhook: _Webhook | None = setting(None)
    form: Form = setting("json", "What the webhook takes: json, or a message of slack or teams")
    command: tuple[Name, ...] = setting(
        (), "Program and its arguments; it gets the message as JSON on standard input"
    )

    email: tuple[Name, ...] = setting((), "Addresses that get an e-mail")
    sender: Name | None = setting(None, "Address that e-mails come from")
    server: _Server | None = setting(None)

    @property
    def label(self) -> str:
        """What messages call it; never with a secret in it."""
        return self.webhook or " ".join(self.command or self.email)


def wrong_entries(entries: Sequence[Notify]) -> list[int]:
    """The numbers of entries that name no way to tell, or two, or half of one."""
    return [
        n
        for n, each in enumerate(entries)
        if sum(map(bool, (each.webhook, each.command, each.email))) != 1
        or {bool(each.email)} != {bool(each.sender), bool(each.server)}
    ]
