"""The status of a project, as `status` prints it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from odfbuild.inspect.status import ProjectStatus
from odfbuild.report.forms.words import paint
from odfbuild.report.holders import holders_to_data
from odfbuild.wording import count

SHOWN = 10
"""So many names of a group are shown, unless all are asked for."""

_CHOOSE = (
    "help: choose all of one side, as in `git checkout --theirs chains`, then `odfbuild apply`, "
    "`git add --all` and `git commit`"
)

_COLORS = {
    "refused": "magenta",
    "new": "green",
    "changed": "yellow",
    "stale": "cyan",
    "to be checked": "blue",
    "no definition": "red",
    "not pulled": "magenta",
    "earlier query": "yellow",
}


def render_status(found: ProjectStatus, *, color: bool = False, full: bool = False) -> str:
    """A line about the project, then a group of datasets each; `full` names all of them."""
    lines = [_head(found)]
    for group, names in found.groups.items():
        title = paint(group, _COLORS[group], on=color)
        lines += ["", f"{title} ({len(names):,}):", *_names(names, full)]
    if found.failed:
        title = paint("not completed last time", "red", on=color)
        lines += ["", f"{title} ({len(found.failed):,}):"]
        named = [f"{name}: {result}" for name, result in found.failed.items()]
        lines += _names(named, full)
    if found.held:
        lines += ["", f"{paint('locked', 'magenta', on=color)}:"]
        lines += [f"  {', '.join(h.aliases)} by process {h.pid}" for h in found.held]
    if found.in_conflict:
        title = paint("in conflict in Git", "red", on=color)
        lines += ["", f"{title} ({len(found.in_conflict):,}):", *_names(found.in_conflict, full)]
        lines.append(f"  {_CHOOSE}")
    elif not found.groups:
        lines += ["", "All datasets are up to date."]
    return "\n".join(lines)


def status_to_data(found: ProjectStatus) -> dict[str, Any]:
    """The same as plain values, with all names."""
    return {
        "project": found.project,
        "env": found.env,
        "git": dict(found.git) if found.git else None,
        "datasets": found.datasets,
        "external": list(found.external),
        "groups": {group.replace(" ", "_"): list(names) for group, names in found.groups.items()},
        "failed": [
            {
                "name": name,
                "run_id": result.run,
                "status": result.status,
                "because": result.because,
                "error": result.error,
            }
            for name, result in found.failed.items()
        ],
        "locked": holders_to_data(found.held),
        "in_conflict": list(found.in_conflict),
    }


def _head(found: ProjectStatus) -> str:
    parts = [f"Project {found.project}"]
    if found.env is not None:
        parts.append(f"environment {found.env}")
    parts.append(count(found.datasets, "dataset"))
    if found.external:
        parts.append(count(len(found.external), "external dataset"))
    if found.git is not None:
        dirty = ", with changes that are not committed" if found.git["dirty"] else ""
        parts.append(f"commit {found.git['commit'][:10]}{dirty}")
    return ", ".join(parts)


def _names(names: tuple[str, ...] | list[str], full: bool) -> Iterator[str]:
    shown = names if full else names[:SHOWN]
    yield from (f"  {name}" for name in shown)
    if len(names) > len(shown):
        yield f"  … and {len(names) - len(shown):,} more; --full names all"
