"""What a commit of the chains brought, as text and data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from odfbuild.gitops.publish import Published, describe


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
