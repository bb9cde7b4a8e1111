"""What a commit of the chains brought, as text and data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from odfbuild.project.git.shared import Published, SharedBranch, describe
from odfbuild.wording import count


def render_published(done: Published) -> str:
    """The commit, a line for each dataset that moved, and where it was pushed."""
    lines = [f"Committed {done.commit[:10]}:" if done.commit else "Git has all of the chains."]
    lines += [f"  {describe(each)}" for each in done.datasets]
    lines += [f"Pushed to {done.pushed}."] if done.pushed else []
    return "\n".join(lines)


def published_to_data(done: Published) -> dict[str, Any]:
    """The same for programs."""
    return {
        "commit": done.commit,
        "pushed": done.pushed,
        "datasets": [asdict(each) for each in done.datasets],
    }


def render_pushed(done: SharedBranch) -> str:
    """What was pushed of a branch, and where."""
    return f"Pushed the branch {done.branch} to {done.remote}: {_contents(done)}."


def render_fetched(branch: str, found: SharedBranch | None) -> str:
    """What came of a branch."""
    if found is None:
        return f"There is no branch {branch} to fetch."
    return f"Fetched the branch {branch} from {found.remote}: {_contents(found)}."


def deleted_branch(branch: str, remote: str | None) -> str:
    """That a branch was deleted at a remote; `None`: it was not there."""
    if remote is None:
        return f"There is no branch {branch} to delete."
    return f"Deleted the branch {branch} at {remote}."


def shared_to_data(done: SharedBranch) -> dict[str, Any]:
    """The same for programs."""
    return {"branch": done.branch, "remote": done.remote, "datasets": list(done.datasets)}


def _contents(done: SharedBranch) -> str:
    return f"{count(len(done.datasets), 'dataset')}, {count(done.files, 'file')}"
