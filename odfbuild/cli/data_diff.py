"""What `diff --data` and `plan --data` share: options, and which comparison they ask for."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.extras import require_pyarrow

if TYPE_CHECKING:
    from odfbuild.inspect.data_diff.model import Comparison
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.project.model import Config
    from odfbuild.survey.survey import Survey


def for_others(found: Comparison, config: Config) -> Comparison:
    """What of a difference may leave this machine."""
    from odfbuild.inspect.data_diff.shown import shown
    from odfbuild.project.settings.showing import Showing

    personal = () if config.personal_keys.publish else config.personal
    return shown(found, Showing(config.show, personal))


def for_this_output(found: Comparison, config: Config) -> Comparison:
    """What of a difference may be printed: all of it, but in the log of a CI job."""
    in_job = "true" in (os.environ.get("GITHUB_ACTIONS"), os.environ.get("GITLAB_CI"))
    return for_others(found, config) if in_job else found


OF_RECORDS = "it is about records: add --data"
LimitBytesOption = Annotated[
    str | None,
    typer.Option(
        "--limit-bytes",
        metavar="SIZE",
        envvar="ODFBUILD_LIMIT_BYTES",
        help="With --data: maximum input of all changed queries together, such as 500MB or 2GB; "
        "of larger inputs only the newest records are read (default: 256MB).",
    ),
]


def refuse_limit_bytes(context: typer.Context, why: str) -> None:
    """Wrong usage where `--limit-bytes` limits nothing; its variable counts for where it does."""
    source = context.get_parameter_source("limit_bytes")
    if source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter(why, param_hint="--limit-bytes")


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def limit_of(text: str | None) -> int:
    """Bytes that `--limit-bytes` names, by default those of every comparison."""
    from odfbuild.inspect.data_diff.limit import LIMIT_BYTES

    if text is None:
        return LIMIT_BYTES
    found = re.fullmatch(r"(\d{1,15}) ?(?:([KMGT])B?|B?)", text.strip(), re.IGNORECASE)
    if found is None or not int(found[1]):
        raise typer.BadParameter(
            f"'{text}' is not a size, such as 500MB or 2GB", param_hint="--limit-bytes"
        )
    return int(found[1]) * _UNITS[(found[2] or "").upper()]


def between_moments(
    state: Context, selection: Selection, old: str, new: str | None, key: Sequence[str]
) -> Comparison:
    """The records of the selected datasets at two moments, the second by default now."""
    require_pyarrow("differences of records")
    from odfbuild.inspect.data_diff.ask import between_moments as compare
    from odfbuild.survey.names import moment_in

    workspace = state.workspace()
    names = state.committed(workspace, selection)
    only = names[0] if len(names) == 1 else None
    first = moment_in(workspace, old, only)
    second = None if new is None else moment_in(workspace, new, only)
    labels = (old, "now" if new is None else new)
    return compare(state.config(), workspace, names, (first, second), labels, key)


def with_branch(state: Context, names: Sequence[str] | None, key: Sequence[str]) -> Comparison:
    """The records that the branch has, and those on the head."""
    require_pyarrow("differences of records")
    from odfbuild.inspect.data_diff.ask import with_branch as compare

    return compare(state.config(), state.workspace(), names, key)


def with_chains(state: Context, found: Survey, limit: int, key: Sequence[str] = ()) -> Comparison:
    """What the changed queries of a plan do to records. Says first how much is read for that."""
    require_pyarrow("differences of records")
    from dataclasses import replace

    from odfbuild.inspect.data_diff.ask import with_chains as compare
    from odfbuild.inspect.data_diff.queries import changed_queries
    from odfbuild.report.records.data_diff.view import reads

    queries = changed_queries(found, limit)
    said = reads(queries, limit)
    if said:
        state.console.note(said)
    expected = sum(each.bytes for each in queries)
    made = compare(found, queries, lambda: state.start_engine(expected), key)
    return replace(made, notes=(said, *made.notes)) if said else made


def of_plan(state: Context, found: Survey, limit: int) -> Comparison:
    """What a plan does to records: what its branch has computed, and what it changes beyond."""
    from dataclasses import replace

    made = with_chains(state, found, limit)
    branch = state.given.branch
    if branch is None or branch not in found.workspace.branch_names():
        return made
    done = with_branch(state, found.plan.names, ())
    failed = {each.dataset for each in made.errors}
    again = {each.dataset for each in made.diffs} | failed
    return replace(
        made,
        old=done.old,
        diffs=(*(each for each in done.diffs if each.dataset not in again), *made.diffs),
        same=tuple(dict.fromkeys(each for each in (*done.same, *made.same) if each not in again)),
        errors=(*done.errors, *made.errors),
    )
