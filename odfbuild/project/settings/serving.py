"""Who may read and write the datasets of a project through `odfbuild serve`, and how much.

A setting of the machine, never of a project: whoever changes a project must not let himself in.
"""

from __future__ import annotations

from typing import Annotated

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Patterns
from odfbuild.values import Value

_Positive = Annotated[int, Fits(minimum=1)]


class Access(Value, kw_only=True):
    """What the owner of a token may do, or everybody if there is no token."""

    name: str = setting("", "Who has the token, for the access log")
    token: str | None = setting(None, "Access token, such as ${{ env.CI_TOKEN }}; none: everybody")
    read: Patterns = setting((), "Datasets that may be read")
    write: Patterns = setting((), "Datasets that may be created, read and appended to")
    replace: Patterns = setting((), "Datasets whose history may be replaced, too")


class Serving(Value, kw_only=True):
    """Who may do what, and limits."""

    access: tuple[Access, ...] = setting((), "Who may do what; rights add up")
    max_object_gb: _Positive = setting(64, "Largest object that is taken, in GiB")
    max_connections: _Positive = setting(256, "Connections at once; more are answered 503")
    idle_seconds: _Positive = setting(60, "How long a peer may be silent during a request")
    grace_seconds: _Positive = setting(30, "How long transfers may go on after Ctrl-C or SIGTERM")
