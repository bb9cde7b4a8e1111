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
    ├── EnvironmentProblem  E09xx  Java, Spark, permissions, disk            exit 1
    ├── RepositoryError     E10xx  a repository cannot give or take a dataset  exit 1
    ├── BranchError         E11xx  a branch cannot be used or promoted       exit 1
    ├── RecordsError        E12xx  records cannot be shown as asked          exit 1
    ├── TableError          E13xx  a table cannot be published or read       exit 1
    ├── EngineError         E14xx  an engine, or an address for one, fails   exit 1
    └── PersonalDataError   E16xx  personal data, its keys and statements    exit 1

An error carries fields, not only text: what, where (`Location`), why (`notes`), and the command
or edit that corrects it (`help`). Several errors of one project travel together in `Errors`.

Errors are values: nothing assigns to their fields. Who knows more raises another one, made by
`at`, `or_at`, `noted` or `changed`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import FrozenInstanceError, field
from enum import StrEnum
from typing import Any, Self, TypeVar, dataclass_transform

from odfbuild.values import Value

__all__ = [
    "BranchError",
    "ChainError",
    "CheckError",
    "Code",
    "EngineError",
    "EngineProblem",
    "EnvironmentProblem",
    "Errors",
    "GraphError",
    "InDefinition",
    "InSettings",
    "IngestError",
    "IntegrityError",
    "Location",
    "OdfbuildError",
    "PersonalDataError",
    "PlanError",
    "ProjectError",
    "QueryError",
    "RecordsError",
    "RepositoryError",
    "StaleHeadError",
    "TableError",
    "together",
]


class Code(StrEnum):
    """The codes that other code asks about; the rest only stand where their errors are made.

    What each means is told in `report/error_codes.yaml`.
    """

    NO_PROJECT = "E0100"
    EARLIER_VERSION = "E0111"
    CIRCULAR = "E0203"
    CIRCULAR_CHECK = "E0204"
    CONTRACT_COLUMN = "E0395"
    CONTRACT_TYPE = "E0396"
    CONTRACT_CHECK = "E0397"
    CONTRACT_AGE = "E0398"
    SERVER_UNREACHABLE = "E0406"
    DATABASE_UNREACHABLE = "E0461"
    NO_SUCH_TABLE = "E0463"
    VALUE_DOES_NOT_FIT = "E0466"
    SLOT_IN_USE = "E0494"
    FUNCTION_NOT_ALLOWED = "E0503"
    NOT_DETERMINISTIC = "E0505"
    ORDER_MATTERS = "E0506"
    DUPLICATE_COLUMN = "E0511"
    FAILING_RECORD = "E0517"
    NOT_TRANSLATED = "E0519"
    QUERY_NOT_UNDERSTOOD = "E0524"
    CHECK_VIOLATED = "E0540"
    STEP_TOO_LONG = "E0545"
    SPARK_OUT_OF_MEMORY = "E0546"
    BLOCK_MISSING = "E0802"
    OBJECT_MISSING = "E0811"
    NOT_REPRODUCIBLE = "E0820"
    INPUT_MISSING = "E0822"
    NOT_RECOMPUTED = "E0824"
    REPOSITORY_FORBIDS = "E1005"
    REPOSITORY_LACKS_FILE = "E1007"
    TRANSFER_CUT_OFF = "E1044"
    NO_COLUMN_FOR_TABLE = "E1304"
    KARTOTHEK_FILE_MISSING = "E1337"
    CHECKPOINT_RESET = "E1402"
    CHECKPOINT_TOO_LARGE = "E1403"
    IMAGE_MISSING = "E1432"
    ENGINE_BROKE_OFF = "E1435"
    ENGINE_WITHOUT_ANSWER = "E1437"
    ENGINE_FAILED = "E1439"
    RECORDED_ENGINE_MISSING = "E1447"
    NO_SUBJECT_KEYS = "E1604"
    NO_KEY_TO_SIGN = "E1650"
    WORKER_WITHOUT_STORAGE = "E1682"


class Location(Value):
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


Path = tuple[str | int, ...]
"""Keys and indices that lead to a value of a document."""


class InDefinition(Location, kw_only=True):
    """A place in an event of a definition, told by who does not know the definition's file.

    `path` leads to it in the event's source or transformation, such as `("fetch", "filter")`;
    `line` and `column` count in the text that stands there. `file` spells the path for people.
    """

    path: Path

    @classmethod
    def of(cls, *path: str | int) -> InDefinition:
        """A value."""
        return cls(_spelled(path), path=path)

    @classmethod
    def query(
        cls, step: int, line: int, column: int, snippet: str | None = None, length: int = 1
    ) -> InDefinition:
        """A place in the text of query number `step` of a transformation."""
        path = ("queries", step)
        return cls(_spelled(path), line, column, snippet, max(1, length), path=path)


class InSettings(Location, kw_only=True):
    """A value of odfbuild.yaml, told by who does not read it; `path` leads there from `content`."""

    path: Path

    @classmethod
    def of(cls, *path: str | int) -> InSettings:
        """A value."""
        return cls(_spelled(path), path=path)


def _spelled(path: Path) -> str:
    """A path as people write it, such as `queries[0]` or `fetch.filter`."""
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return "".join(parts).removeprefix(".")


_T = TypeVar("_T")


def _assign(self: Exception, name: str, value: Any) -> None:
    # Python itself keeps an exception's way and cause in names with underscores.
    if not name.startswith("__"):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    Exception.__setattr__(self, name, value)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def _error(cls: type[_T]) -> type[_T]:
    """A frozen dataclass that can be raised."""
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    made.__setattr__ = _assign  # type: ignore[assignment]
    return made


def _restored(cls: type[OdfbuildError], fields: dict[str, Any]) -> OdfbuildError:
    made = cls.__new__(cls)
    vars(made).update(fields)
    return made


@_error
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

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would assign to fields.
        return _restored, (self.__class__, vars(self))

    def apart(self) -> tuple[OdfbuildError, ...]:
        """The errors that travel together in this one, or just this one."""
        return (self,)

    def mapped(self, change: Callable[[OdfbuildError], OdfbuildError]) -> OdfbuildError:
        """What `change` makes of it; of errors that travel together, of each of them."""
        return change(self)

    def at(self, location: Location | None) -> Self:
        """The same error at another place."""
        return self.changed(location=location)

    def or_at(self, location: Location) -> Self:
        """The same error with a place where it has none."""
        return self if self.location is not None else self.at(location)

    def noted(self, *notes: str) -> Self:
        """The same error with more notes."""
        return self.changed(notes=(*self.notes, *notes))

    def changed(self, **fields: Any) -> Self:
        """The same error with other values of `fields`; itself where none of them is another."""
        if all(getattr(self, name) == value for name, value in fields.items()):
            return self
        made = self.__class__.__new__(self.__class__)
        vars(made).update(vars(self), **fields)
        return made.with_traceback(self.__traceback__)


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


class CheckError(OdfbuildError):
    """Records do not keep to a check that is declared for their dataset."""


@_error
class ChainError(OdfbuildError):
    """An event breaks a rule of the metadata chain. `rule` is the reference's name of it."""

    rule: str = field(default="InvalidEvent", kw_only=True)


@_error
class StaleHeadError(OdfbuildError):
    """A dataset moved after the plan was made; nothing has been written for it."""

    exit_code: int = field(default=5, kw_only=True)


@_error
class IntegrityError(OdfbuildError):
    """Stored bytes are not what was committed."""

    exit_code: int = field(default=3, kw_only=True)


class EnvironmentProblem(OdfbuildError):
    """Something outside the project is missing or broken: Java, Spark, permissions, disk."""


class RepositoryError(OdfbuildError):
    """A repository cannot give or take a dataset."""


class BranchError(OdfbuildError):
    """A branch cannot be named, used, changed or promoted like that."""


class RecordsError(OdfbuildError):
    """Committed records cannot be shown as they were asked for."""


class TableError(OdfbuildError):
    """A table cannot be published, or is not what odfbuild published."""


class EngineError(OdfbuildError):
    """An engine that runs as a program of its own cannot be reached, served or believed."""


class PersonalDataError(OdfbuildError):
    """Personal values, keys of subjects, or statements about them cannot be used as asked for."""


def missing_extra(extra: str, purpose: str) -> EnvironmentProblem:
    """The error for an absent optional library; `extra` is its name in `pip install`."""
    return EnvironmentProblem(
        f"{purpose} need the extra '{extra}', which is not installed",
        code="E0903",
        help=f"run `pip install 'odfbuild[{extra}]'`",
    )


class EngineProblem(EnvironmentProblem):
    """The engine does not start, whichever dataset it is asked for."""


class Errors(OdfbuildError):
    """All errors of a project at once, in order of place."""

    errors: tuple[OdfbuildError, ...]

    def __init__(self, errors: Iterable[OdfbuildError]) -> None:
        all_ = tuple(errors)
        exit_code = max((error.exit_code for error in all_), default=1)
        super().__init__(f"{len(all_)} errors", code="E0001", exit_code=exit_code)
        vars(self)["errors"] = all_

    def __str__(self) -> str:
        places = [f" {each.location}:" if each.location else "" for each in self.errors]
        lines = [
            f"{e.code}{place} {e.message}" for e, place in zip(self.errors, places, strict=True)
        ]
        return "\n".join([f"{self.message}:", *lines])

    def apart(self) -> tuple[OdfbuildError, ...]:
        """All of them, also those of `Errors` in it."""
        return tuple(part for each in self.errors for part in each.apart())

    def mapped(self, change: Callable[[OdfbuildError], OdfbuildError]) -> Errors:
        """All of them changed."""
        return Errors(each.mapped(change) for each in self.errors)


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
    return first.noted(*notes).changed(dataset=first.dataset or dataset)


def in_order(errors: Iterable[OdfbuildError]) -> list[OdfbuildError]:
    """Errors by file, line and column; those without a place first."""
    return sorted(errors, key=_order)


def _order(error: OdfbuildError) -> tuple[str, int, int]:
    place = error.location
    return (place.file, place.line or 0, place.column or 0) if place else ("", 0, 0)


def together(errors: Sequence[OdfbuildError]) -> OdfbuildError:
    """What to raise for one or more errors: the only one as it is, several as `Errors`."""
    return errors[0] if len(errors) == 1 else Errors(errors)
