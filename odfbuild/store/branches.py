"""Branches: references beside `refs/head`, and what is known of each.

A branch of a dataset is the file `refs/<branch>`, with the hash of a block as `refs/head` has it.
`info/branches/<branch>` says which block of the head it left, when, and whether it was computed
over part of the inputs. It is written first, so that no reference is there without it. A dataset
without a reference of a branch is in the branch what it is on the head.
Source: Open Data Fabric, "Block Reference".
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import BranchError
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.files import make_folder, read_inside, write_file
from odfbuild.values import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

HEAD = "head"
_LONGEST = 64
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_RULES = (
    "a name has lower-case letters, digits, `.`, `_` and `-`, begins with a letter or a digit, "
    f"and has at most {_LONGEST} characters",
    "it is not `head`, has no `..`, and ends neither with `.` nor with `.lock`",
)


class BranchName(str):
    """A name that a branch may have; it is also the name of a file."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> BranchName:
        """The name `text`; `BranchError` E1101 with a proposal for anything else."""
        if is_branch_name(text):
            return cls(text)
        raise BranchError(
            f"'{text}' cannot be the name of a branch",
            code="E1101",
            notes=_RULES,
            help=f"use another name, such as '{_proposal(text)}'",
        )


def is_branch_name(text: str) -> bool:
    """Whether a branch may have that name."""
    return (
        len(text) <= _LONGEST
        and _NAME.fullmatch(text) is not None
        and text != HEAD
        and ".." not in text
        and not text.endswith((".lock", "."))
    )


def _proposal(text: str) -> str:
    made = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    made = re.sub(r"\.{2,}", ".", made).lstrip("._-")[:_LONGEST]
    made = re.sub(r"(\.lock|[._-])+$", "", made)
    return made if is_branch_name(made) else "pr-12"


class Limit(Value, kw_only=True):
    """Which part of its inputs a branch was computed over, as `--sample` or `--since` said."""

    sample: str | None = None
    since: str | None = None

    def __str__(self) -> str:
        """The options that said so."""
        given = {"--sample": self.sample, "--since": self.since}
        return " ".join(f"{option} {value}" for option, value in given.items() if value)

    @classmethod
    def parse(cls, sample: str | None, since: str | None) -> Limit | None:
        """From options; `None` without them, `BranchError` E1109 for wrong ones."""
        if sample is None and since is None:
            return None
        try:
            if sample is not None and not (sample.endswith("%") and 0 < float(sample[:-1]) < 100):
                raise ValueError(f"'{sample}' is not a percentage above 0 and below 100")
            time = None if since is None else str(Timestamp.parse(since))
        except ValueError as error:
            raise BranchError(
                f"the limit is wrong: {error}",
                code="E1109",
                help="use a sample such as `--sample 10%`, or a time of RFC 3339 such as "
                "`--since 2026-01-31T00:00:00Z`",
            ) from None
        return cls(sample=sample, since=time)

    @property
    def fraction(self) -> float:
        """The part of the records that a sample has, between 0 and 1."""
        return float((self.sample or "100%").removesuffix("%")) / 100

    def to_data(self) -> dict[str, str]:
        """As JSON has it."""
        given = {"sample": self.sample, "since": self.since}
        return {name: value for name, value in given.items() if value}

    @classmethod
    def of(cls, data: Any) -> Limit | None:
        """From JSON; `ValueError` for what is no limit."""
        if data is None:
            return None
        if not isinstance(data, dict) or not data or not data.keys() <= {"sample", "since"}:
            raise ValueError("the limit is neither a sample nor a time")
        return cls(**{name: str(value) for name, value in data.items()})


class BranchRef(Value, kw_only=True):
    """A dataset in a branch: its newest block there, and the block of the head that it left.

    `base` is `None` for a dataset that exists in the branch only. With a `limit` its records are
    made from part of the inputs, and it is never promoted.
    """

    head: Multihash
    base: Multihash | None
    created: Timestamp
    limit: Limit | None = None


class BranchInfo(Value, kw_only=True):
    """What `info/branches/<branch>` says; `git` is the branch of Git that it was begun on."""

    base: Multihash | None
    created: Timestamp
    limit: Limit | None = None
    git: str | None = None

    def write(self, folder: str, branch: str) -> None:
        """Write it for the dataset in `folder`."""
        file = info_file(folder, branch)
        make_folder(file.parent)
        write_file(file, self.encode())

    def encode(self) -> bytes:
        """The content of the file."""
        import json

        data: dict[str, Any] = {
            "base": None if self.base is None else str(self.base),
            "created": str(self.created),
        }
        if self.limit is not None:
            data["limit"] = self.limit.to_data()
        if self.git is not None:
            data["git"] = self.git
        return json.dumps(data).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes) -> BranchInfo:
        """From the content of the file; `ValueError` when it is damaged."""
        import json

        try:
            data = json.loads(content)
            base, git = data["base"], data.get("git")
            return cls(
                base=None if base is None else Multihash.parse(base),
                created=Timestamp.parse(data["created"]),
                limit=Limit.of(data.get("limit")),
                git=None if git is None else str(git),
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None

    @classmethod
    def read(cls, folder: str, name: str, branch: str) -> BranchInfo:
        """That of the dataset `name`; `BranchError` E1104 when it is missing or damaged."""
        file = info_file(folder, branch)
        try:
            return cls.decode(read_inside(str(file)))
        except (OSError, ValueError) as error:
            raise BranchError(
                f"what is known of the branch '{branch}' of '{name}' is missing or damaged",
                code="E1104",
                dataset=name,
                notes=(f"file: {file}", f"{type(error).__name__}: {error}"),
                help="restore that file (git checkout, or a backup), or give the branch up with "
                f"`odfbuild branch delete {branch}` and apply again",
            ) from None


def info_name(branch: str) -> str:
    """The file about a branch, below `info`."""
    return f"branches/{branch}"


def info_file(folder: str, branch: str) -> Path:
    """Where it is kept what is known of a branch of the dataset in `folder`."""
    return Path(f"{folder}/info/{info_name(branch)}")


def references(folder: str) -> Iterator[str]:
    """Names of the references of the dataset in `folder`: `head`, and those of branches."""
    try:
        names = os.listdir(f"{folder}/refs")  # noqa: PTH208 (asked of thousands)
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (name for name in sorted(names) if name == HEAD or is_branch_name(name))


def has_references(folder: str | Path) -> bool:
    """Whether the folder holds a dataset, be it in a branch only."""
    return next(references(os.fspath(folder)), None) is not None


def unknown_branch(name: str, known: Collection[str]) -> BranchError:
    """The error for a branch that no dataset is in."""
    from odfbuild.wording import did_you_mean

    begin = f"`odfbuild apply -b {name}` begins it when definitions are changed"
    return BranchError(
        f"there is no branch '{name}'",
        code="E1102",
        notes=(f"branches: {', '.join(sorted(known)) or 'none'}",),
        help=did_you_mean(name, known, begin),
    )


def branch_cache(cache: Path, branch: str) -> Path:
    """The folder for files of the cache that belong to a branch."""
    return cache / "branches" / branch
