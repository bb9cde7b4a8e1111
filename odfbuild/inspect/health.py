"""The result of one check of the machine or the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from odfbuild.errors import Errors, OdfbuildError
from odfbuild.values import Value


class Status(StrEnum):
    """`warn`: it works, but not as well or as safely as it could; `fail`: something will not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Value):
    """`name` is of a closed list; `detail` says what was found; `help` is a command or an edit."""

    name: str
    status: Status
    detail: str
    help: str | None = None


def ok(name: str, detail: str) -> Check:
    """All is well."""
    return Check(name, Status.OK, detail)


def warn(name: str, detail: str, help: str) -> Check:
    """Something could be better."""
    return Check(name, Status.WARN, detail, help)


def fail(name: str, detail: str, help: str) -> Check:
    """Something does not work."""
    return Check(name, Status.FAIL, detail, help)


def look(name: str, at: Callable[[], Iterable[Check]]) -> list[Check]:
    """What looking found; an error on the way is a finding, too."""
    try:
        return list(at())
    except Errors as error:
        first = error.errors[0]
        rest = f", and {len(error.errors) - 1} more" if len(error.errors) > 1 else ""
        return [fail(name, _place(first) + first.message + rest, first.help or "odfbuild validate")]
    except OdfbuildError as error:
        return [fail(name, _place(error) + error.message, error.help or "")]
    except OSError as error:
        return [fail(name, str(error), "correct the permissions, or free disk space")]


def _place(error: OdfbuildError) -> str:
    return f"{error.location}: " if error.location else ""
