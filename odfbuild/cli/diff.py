"""`odfbuild diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.data_diff import (
    OF_RECORDS,
    LimitBytesOption,
    between_moments,
    for_others,
    for_this_output,
    limit_of,
    refuse_limit_bytes,
    with_branch,
    with_chains,
)
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.option_groups import Together
from odfbuild.cli.options import AsOfOption, DetailOption, selecting, selection_of
from odfbuild.cli.plan_form import PlanForm, PlanFormOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.inspect.data_diff.model import Comparison
    from odfbuild.plan.graph.selection import Selection

RevisionOrSelection = Annotated[
    "tuple[list[str], Selection]",
    Together(
        selecting(
            Annotated[
                list[str] | None,
                typer.Argument(
                    metavar="REV|SELECTION",
                    autocompletion=complete.selections,
                    help="A revision in Git, or two as OLD..NEW (default: the chains), and names "
                    "or selections.",
                ),
            ]
        ),
        lambda words, *options: (words or [], selection_of(None, *options)),
    ),
]


def diff(
    context: typer.Context,
    of: RevisionOrSelection,
    form: PlanFormOptions,
    *,
    as_of: AsOfOption = None,
    detail: DetailOption = False,
    data: Annotated[
        bool,
        typer.Option(
            "--data",
            help="Compare records: those of a branch (--branch) or of an earlier time (--from), or "
            "those that changed queries give, with the committed ones.",
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME|BLOCK", help="With --data: compare with the records of then."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME|BLOCK", help="With --from: the later state (default: now)."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="COLUMN,…",
            help="With --data: columns that identify a record (default: the primary key, columns "
            "that a check has as unique, or the first columns that are unique).",
        ),
    ] = None,
    limit_bytes: LimitBytesOption = None,
) -> int:
    """Compare definitions with the chains or with a Git revision.

    Renaming or reformatting a file is no difference. A dataset renamed by `moved:` in odfbuild.yaml
    is the same dataset. --as-of compares with the chains of an earlier time. --data compares
    records instead of definitions, and commits nothing.
    """
    state: Context = context.obj
    words, selection = of
    if data:
        if as_of is not None:
            raise typer.BadParameter("with --data, say --from", param_hint="--as-of")
        if detail:
            raise typer.BadParameter("it is about definitions: remove --data", param_hint="--full")
        if since is not None or state.given.branch is not None:
            refuse_limit_bytes(context, "it limits changed queries: remove --from and --branch")
        from dataclasses import replace

        selection = replace(selection, select=(*words, *selection.select))
        return _data(state, selection, form, since, until, _columns(key), limit_bytes)
    refuse_limit_bytes(context, OF_RECORDS)
    for name, given in {"--from": since, "--to": until, "--key": key}.items():
        if given is not None:
            raise typer.BadParameter(OF_RECORDS, param_hint=name)
    if form not in (PlanForm.text, PlanForm.json):
        raise typer.BadParameter(
            "definitions are text or JSON; add --data to compare records", param_hint="--format"
        )
    return _definitions(state, words, selection, as_of, as_json=form is PlanForm.json, full=detail)


def _columns(key: str | None) -> list[str]:
    """The columns that `--key` names."""
    found = [each.strip() for each in (key or "").split(",")]
    if key is not None and not all(found):
        raise typer.BadParameter(
            "name columns, with commas between them, such as id,day", param_hint="--key"
        )
    return [each for each in found if each]


def _data(
    state: Context,
    selection: Selection,
    form: PlanForm,
    since: str | None,
    until: str | None,
    key: Sequence[str],
    limit_bytes: str | None,
) -> int:
    """Compare records."""
    limit = limit_of(limit_bytes)
    if since is not None:
        found = between_moments(state, selection, since, until, key)
    elif until is not None:
        raise typer.BadParameter("say --from, too", param_hint="--to")
    elif state.given.branch is not None:
        found = with_branch(state, state.chosen(selection), key)
    else:
        from odfbuild.survey.survey import PlanRequest

        made = state.survey(PlanRequest(selection=selection))
        found = with_chains(state, made, limit, key)
    _show_data(state, found, form)
    state.console.error(*found.errors)
    return exit_code_of(found.errors)


def _show_data(state: Context, found: Comparison, form: PlanForm) -> None:
    console, config = state.console, state.config()
    if form is PlanForm.json:
        from odfbuild.report.records.data_diff.json import data_diff_to_data

        console.data(data_diff_to_data(for_this_output(found, config)))
    elif form is PlanForm.md:
        from odfbuild.report.records.data_diff.markdown import render_data_diff_markdown

        seen = for_others(found, config)
        console.result(render_data_diff_markdown(seen, config.name, config.env))
    elif form is PlanForm.html:
        from odfbuild.report.records.data_diff.html import render_data_diff_html

        console.result(render_data_diff_html(for_others(found, config), config.name))
    else:
        from odfbuild.report.records.data_diff.text import render_data_diff

        seen = for_this_output(found, config)
        console.result(render_data_diff(seen, color=console.color))


def _definitions(
    state: Context,
    words: Sequence[str],
    selection: Selection,
    as_of: str | None,
    *,
    as_json: bool,
    full: bool,
) -> int:
    """Compare definitions."""
    from dataclasses import replace

    from odfbuild.plan.graph.selection import Selection
    from odfbuild.report.definitions import differences_to_data, render_differences
    from odfbuild.report.errors import with_errors
    from odfbuild.survey.compare import compare_revisions, compare_with_chains

    revision = words[0] if words and _is_revision(state, words[0]) else None
    named = words if revision is None else words[1:]
    selection = replace(selection, select=(*named, *selection.select))
    old, _, new = (revision or "").partition("..")
    if revision is None:
        then = None if as_of is None else state.states_at(Selection(), as_of)
        found = compare_with_chains(state.directory, state.given, then)
        old = "chains" if as_of is None else f"chains as of {as_of}"
    elif as_of is not None:
        raise typer.BadParameter("a revision is in Git, not in the chains", param_hint="--as-of")
    else:
        found = compare_revisions(state.config(), old or "HEAD", new or None)
    chosen = state.chosen(selection)
    changes = [e for e in found.changes if chosen is None or e.present_name in chosen]
    wrong = found.faults_of(chosen)
    if as_json:
        told = differences_to_data(changes, old or "HEAD", new or "files")
        state.console.data(with_errors(told, wrong))
    else:
        color = state.console.color
        state.console.result(render_differences(changes, color=color, full=full))
    state.console.error(*wrong)
    return exit_code_of(wrong)


def _is_revision(state: Context, word: str) -> bool:
    """Whether the first word is a revision: one that Git knows, or nothing that selects."""
    from odfbuild.project.git.at_revision import is_revision

    if ".." in word or is_revision(state.config().root, word):
        return True
    selects = any(sign in word for sign in "+*:,@")
    return not selects and word not in state.names()
