"""Who may read and write the datasets of a project through `odfbuild serve`, and how much.

A setting of the machine, never of a project: whoever changes a project must not let himself in.
"""

from __future__ import annotations

from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.values import Value

_Positive = Annotated[int, Fits(minimum=1)]
_Seconds = Annotated[float, Fits(exclusiveMinimum=0)]
Sender = Literal["github", "stripe"]


class Access(Value, kw_only=True):
    """What the owner of a token may do, or everybody if there is no token."""

    name: str = setting("", "Who has the token, for the access log")
    token: str | None = setting(None, "Access token, such as ${{ env.CI_TOKEN }}; none: everybody")
    read: Patterns = setting((), "Datasets that may be read")
    write: Patterns = setting((), "Datasets that may be created, read and appended to")
    replace: Patterns = setting((), "Datasets whose history may be replaced, too")
    ingest: Patterns = setting((), "Datasets to which records may be pushed, and nothing else")


class Webhook(Value, kw_only=True):
    """Messages that another service signs; each becomes a record of `dataset`."""

    name: Name = setting(about="Last part of the address: /webhooks/NAME")
    dataset: Name = setting(about="Dataset that gets the records")
    source: str | None = setting(None, "Push source (default: the only one)")
    sender: Sender = setting(about="Whose form of signatures it is")
    secret: Name = setting(about="Key of the signatures, such as ${{ env.GITHUB_SECRET }}")
    tolerance_seconds: _Positive = setting(
        300, "How far the time of a signature may be from now, where it has one"
    )


class Pushing(Value, kw_only=True):
    """Whether records are taken over HTTP, how much, and how they are committed together."""

    enabled: bool = setting(False, "Take records, as with `serve --ingest`")
    max_request_mb: _Positive = setting(16, "Largest request, in MiB")
    requests_per_minute: _Positive = setting(600, "Requests of one token or webhook in a minute")
    max_waiting: _Positive = setting(500, "Requests that wait for their commit at the same time")
    batch_requests: _Positive = setting(200, "Most requests that are committed together")
    batch_mb: _Positive = setting(32, "A batch is committed when it has so many MiB")
    batch_seconds: _Seconds = setting(0.2, "How long a request waits for others")
    webhooks: tuple[Webhook, ...] = setting((), "Services that send signed messages")


class Serving(Value, kw_only=True):
    """Who may do what, and limits."""

    access: tuple[Access, ...] = setting((), "Who may do what; rights add up")
    max_object_gb: _Positive = setting(64, "Largest object that is taken, in GiB")
    max_connections: _Positive = setting(256, "Connections at once; more are answered 503")
    idle_seconds: _Positive = setting(60, "How long a peer may be silent during a request")
    grace_seconds: _Positive = setting(30, "How long transfers may go on after Ctrl-C or SIGTERM")
    ingest: Pushing = setting(Pushing(), "Records that others push")
