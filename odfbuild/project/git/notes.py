"""Which heads the chains had after a run at a commit of Git: notes on commits.

Notes lie in `refs/notes/odfbuild`, a line for each dataset that a run moved: hash of its head, name
of the dataset, name of the project. Commits and chains are graphs of hashes both; a note ties one
to the other, so that a block can be traced to a commit, and a rewritten history is noticed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.project.git.repository import signed
from odfbuild.values import Value

if TYPE_CHECKING:
    from git import Repo

REF = "odfbuild"
_FIELDS = "%x1e%H%x1f%aN%x1f%aI%x1f%s%x1f"


class CommitInfo(Value, kw_only=True):
    """A commit of Git: full hash, author, time of authorship (RFC 3339), first line of message."""

    hash: str
    author: str
    time: str
    subject: str

    def __str__(self) -> str:
        return f'commit {self.hash[:10]} "{self.subject}" ({self.author})'


class Anchor(Value, kw_only=True):
    """The heads (text of hashes by name of dataset) that runs at a commit left."""

    commit: CommitInfo
    heads: Mapping[str, str]


class NotAnchored(Exception):
    """Git did not take a note; the text says why, in one line."""


def is_anchoring(repo: Repo) -> bool:
    """Whether runs are to leave notes: `git install` says so in the configuration."""
    with repo.config_reader() as config:
        return bool(config.get_value("odfbuild", "notes", default=False))


def anchor(repo: Repo, project: str, heads: Mapping[str, str]) -> None:
    """Note these heads on the commit that the repository is at, beside what is noted there.

    Raises `NotAnchored` when there is no commit or Git refuses.
    """
    from git import GitCommandError

    if not repo.head.is_valid():
        raise NotAnchored("there is no commit yet")
    commit = repo.head.commit.hexsha
    noted = _note(repo, commit)
    lines = {line.partition(" ")[2]: line for line in noted.splitlines() if line.strip()}
    lines |= {f"{name} {project}": f"{head} {name} {project}" for name, head in heads.items()}
    # Through a file: the names of ten thousand datasets are more than a command line holds.
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lines[key] for key in sorted(lines)) + "\n")
        file.flush()
        try:
            with signed(repo):
                repo.git.notes(f"--ref={REF}", "add", "--force", "--file", file.name, commit)
        except GitCommandError as error:
            lines_said = str(error.stderr).strip().splitlines() or [f"exit code {error.status}"]
            raise NotAnchored(lines_said[-1].strip(" '")) from None


def anchors(repo: Repo, project: str) -> list[Anchor]:
    """What was noted on the commits that lead here, oldest first."""
    if not repo.head.is_valid():
        return []
    said = repo.git.log(
        "--reverse", "--topo-order", f"--notes={REF}", f"--format={_FIELDS}%N", "HEAD", "--"
    )
    found = []
    for record in said.split("\x1e")[1:]:
        *fields, note = record.split("\x1f")
        heads = _heads(note, project)
        if heads:
            found.append(Anchor(commit=_commit(fields), heads=heads))
    return found


def commits_of_files(repo: Repo, folder: str) -> dict[str, CommitInfo]:
    """The commit that brought each file of a folder, by the name of the file."""
    if not repo.head.is_valid():
        return {}
    said = repo.git.log(
        "--reverse", "--diff-filter=A", "--no-renames", "--name-only", f"--format={_FIELDS}",
        "HEAD", "--", folder,
    )  # fmt: skip
    found: dict[str, CommitInfo] = {}
    for record in said.split("\x1e")[1:]:
        *fields, files = record.split("\x1f")
        commit = _commit(fields)
        for file in files.split("\n"):
            if file:
                found.setdefault(Path(file).name, commit)
    return found


def last_changes(repo: Repo, folder: str) -> dict[str, CommitInfo]:
    """The commit that last changed each file below a folder, by its path in the repository."""
    if not repo.head.is_valid():
        return {}
    said = repo.git.log("--no-renames", "--name-only", f"--format={_FIELDS}", "HEAD", "--", folder)
    found: dict[str, CommitInfo] = {}
    for record in said.split("\x1e")[1:]:
        *fields, files = record.split("\x1f")
        commit = _commit(fields)
        for file in filter(None, files.split("\n")):
            found.setdefault(file, commit)
    return found


def commit_of_line(repo: Repo, file: str, line: int | None) -> CommitInfo | None:
    """The commit that last changed a line of a file (`None`: any of it).

    `None` when that is not committed, or Git does not know the file.
    """
    from git import GitCommandError

    if not repo.head.is_valid():
        return None
    top = str(repo.working_tree_dir)
    try:
        if line is None:
            said = repo.git.log("-1", f"--format={_FIELDS}", "HEAD", "--", f"{top}/{file}")
        else:
            blamed = repo.git.blame(
                "--porcelain", "--no-textconv", f"-L{line},{line}", "--", f"{top}/{file}"
            )
            commit = blamed.split(maxsplit=1)[0]
            if not commit.strip("0"):
                return None
            said = repo.git.log("-1", f"--format={_FIELDS}", commit, "--")
    except GitCommandError:
        return None
    fields = said.split("\x1e")[-1].split("\x1f")
    return _commit(fields[:4]) if len(fields) >= 4 else None


def history(repo: Repo) -> list[str]:
    """Hashes of all commits that lead here, none before one that it came from."""
    if not repo.head.is_valid():
        return []
    return str(repo.git.rev_list("--reverse", "--topo-order", "HEAD", "--")).split()


def _commit(fields: list[str]) -> CommitInfo:
    hash, author, time, subject = fields
    return CommitInfo(hash=hash, author=author, time=time, subject=subject)


def _note(repo: Repo, commit: str) -> str:
    from git import GitCommandError

    try:
        return str(repo.git.notes(f"--ref={REF}", "show", commit))
    except GitCommandError:
        return ""  # there is none


def _heads(note: str, project: str) -> dict[str, str]:
    words = (line.split(maxsplit=2) for line in note.splitlines())
    return {each[1]: each[0] for each in words if len(each) == 3 and each[2] == project}
