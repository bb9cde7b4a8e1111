"""Every error that a user can meet.

    OdfbuildError
    ├── ProjectError        E01xx  the files of a project are wrong          exit 1
    ├── GraphError          E02xx  names, inputs, cycles                     exit 1
    ├── PlanError           E03xx  what is asked for cannot be planned       exit 1
    ├── IngestError         E04xx  fetching, reading or merging failed       exit 1
    ├── QueryError          E05xx  a query is wrong or not allowed           exit 1
    ├── CheckError          E054x  records do not keep to a check            exit 1
    ├── ChainError          E06xx  an event breaks a rule of the chain       exit 1
    ├── StaleHeadError      E07xx  a dataset moved since the plan            exit 5
    ├── IntegrityError      E08xx  stored bytes are not what was committed   exit 3
    └── EnvironmentProblem  E09xx  Java, Spark, permissions, disk            exit 1

An error carries fields, not only text: what, where (`Location`), why (`notes`), and the command
or edit that fixes it (`help`). Several errors of one project travel together in `Errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field

__all__ = [
    "ChainError",
    "CheckError",
    "EngineProblem",
    "EnvironmentProblem",
    "Errors",
    "GraphError",
    "IngestError",
    "IntegrityError",
    "Location",
    "OdfbuildError",
    "PlanError",
    "ProjectError",
    "QueryError",
    "StaleHeadError",
    "together",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. Lines and columns count from 1; `None` where unknown.

    `snippet` is the text of that line, `length` how many characters to underline.
    """

    file: str
    line: int | None = None
    column: int | None = None
    snippet: str | None = None
    length: int = 1
    instance: str | None = None

    def __str__(self) -> str:
        parts = [
            self.file,
            *(str(n) for n in (self.line, self.column) if n is not None),
        ]
        where = ":".join(parts)
        return f"{where} ({self.instance})" if self.instance else where


@dataclass(eq=False)
class OdfbuildError(Exception):
    """What went wrong, where, why, and the way out.

    `code` is stable across releases; `dataset` is the alias concerned, when there is one.
    """

    message: str
    code: str = "E0000"
    location: Location | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    dataset: str | None = None
    exit_code: int = field(default=1, kw_only=True)

    def __str__(self) -> str:
        return self.message

    def apart(self) -> tuple[OdfbuildError, ...]:
        """The errors that travel together in this one, or just this one."""
        return (self,)


class ProjectError(OdfbuildError):
    """The files of a project are wrong: YAML, templates, unknown keys, wrong types."""


class GraphError(OdfbuildError):
    """Definitions do not form a graph: unknown input, duplicate name, cycle."""


class PlanError(OdfbuildError):
    """What the definitions ask for cannot be planned, such as a breaking change."""


class IngestError(OdfbuildError):
    """Fetching, preparing, reading or merging source data failed."""


class QueryError(OdfbuildError):
    """A query does not parse, does not resolve, is not deterministic or not allowed."""


@dataclass(eq=False)
class CheckError(OdfbuildError):
    """Records do not keep to a check that is declared for their dataset.

    `declared` are the paths of the checks concerned below `checks` of odfbuild.yaml.
    """

    declared: tuple[tuple[str | int, ...], ...] = field(default=(), kw_only=True)


class ChainError(OdfbuildError):
    """An event breaks a rule of the metadata chain. `rule` is the reference's name of it."""

    rule: str = "InvalidEvent"


@dataclass(eq=False)
class StaleHeadError(OdfbuildError):
    """A dataset moved after the plan was made; nothing has been written for it."""

    exit_code: int = field(default=5, kw_only=True)


@dataclass(eq=False)
class IntegrityError(OdfbuildError):
    """Stored bytes are not what was committed."""

    exit_code: int = field(default=3, kw_only=True)


class EnvironmentProblem(OdfbuildError):
    """Something outside the project is missing or broken: Java, Spark, permissions, disk."""


def missing_extra(extra: str, purpose: str) -> EnvironmentProblem:
    """The error for an absent optional library; `extra` is its name in `pip install`."""
    return EnvironmentProblem(
        f"{purpose} need a library that is not installed",
        code="E0903",
        help=f"run `pip install 'odfbuild[{extra}]'`",
    )


class EngineProblem(EnvironmentProblem):
    """The engine does not start, whichever dataset it is asked for."""


class Errors(OdfbuildError):
    """All errors of a project at once, in order of place."""

    def __init__(self, errors: Iterable[OdfbuildError]) -> None:
        self.errors = tuple(errors)
        super().__init__(f"{len(self.errors)} errors", code="E0001")
        self.exit_code = max((error.exit_code for error in self.errors), default=1)

    def __str__(self) -> str:
        places = [f" {each.location}:" if each.location else "" for each in self.errors]
        lines = [
            f"{e.code}{place} {e.message}" for e, place in zip(self.errors, places, strict=True)
        ]
        return "\n".join([f"{self.message}:", *lines])

    def apart(self) -> tuple[OdfbuildError, ...]:
        """All of them, also those of `Errors` in it."""
        return tuple(part for each in self.errors for part in each.apart())


EARLY_CHAIN = (
    "migrate the definition (docs/migrate.md), keep the old chain elsewhere, and apply: a new "
    "history begins with what the source still has"
)
"""The way out for chains that are older than all that can be read."""


def as_one(errors: Sequence[OdfbuildError], dataset: str | None = None) -> OdfbuildError:
    """The first of one or more errors of a dataset, with the others as notes."""
    first, *others = [each for error in errors for each in error.apart()]
    notes = (
        f"also {each.code}{f' at {each.location}' if each.location else ''}: {each.message}"
        for each in others
    )
    made = copy(first)
    made.notes = (*first.notes, *notes)
    made.dataset = first.dataset or dataset
    return made


def together(errors: Sequence[OdfbuildError]) -> OdfbuildError:
    """What to raise for one or more errors: the only one as it is, several as `Errors`."""
    return errors[0] if len(errors) == 1 else Errors(errors)
