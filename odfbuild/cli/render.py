"""`odfbuild render`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import AsOfOption, JsonOptions, SelectionOptions

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.project.model import Definition


def render(
    context: typer.Context,
    selection: SelectionOptions,
    *,
    as_of: AsOfOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write one file for each dataset to this folder."
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Print definitions with templates rendered and short forms written out.

    --as-of shows the definitions that the chains had at an earlier time.
    """
    from odfbuild.wording import count

    state: Context = context.obj
    wanted = _read(state, selection) if as_of is None else _in_force(state, selection, as_of)
    if as_json:
        from odfbuild.odf.yaml_form import to_manifest

        state.console.data([to_manifest(each.snapshot) for each in wanted])
    elif out is None:
        state.console.result("---\n".join(map(_text, wanted)) or "There are no datasets.")
    if out is None:
        return 0
    for definition in wanted:
        file = out / f"{definition.name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_text(definition), encoding="utf-8")
    state.console.note(f"Wrote {count(len(wanted), 'file')} to {out}.")
    return 0


def _read(state: Context, selection: Selection) -> list[Definition]:
    from odfbuild.survey.definitions import read_definitions

    chosen = state.chosen(selection)
    project = read_definitions(state.directory, state.given).project
    return [d for d in project.definitions if chosen is None or d.name in chosen]


def _in_force(state: Context, selection: Selection, as_of: str) -> list[Definition]:
    """What chains amounted to as definitions, where each stands in its chain."""
    from odfbuild.plan.changes.committed import committed_snapshot
    from odfbuild.project.model import Definition

    known = state.workspace().readable().items()
    aliases = {each.dataset_id: name for name, each in known}
    return [
        Definition(
            snapshot=committed_snapshot(name, each, aliases),
            file=f"block #{each.blocks - 1} {each.head.short} of {name}",
        )
        for name, each in state.states_at(selection, as_of).items()
    ]


def _text(definition: Definition) -> str:
    from odfbuild.odf.yaml_form import to_manifest
    from odfbuild.odf.yaml_text import dump_yaml

    text = f"# {definition.location}\n{dump_yaml(to_manifest(definition.snapshot))}"
    return text + "".join(f"# {line}".rstrip() + "\n" for line in _translation(definition))


def _translation(definition: Definition) -> Iterator[str]:
    """The Spark SQL that runs for queries of another engine, line by line."""
    from odfbuild.engine.translate.runnable import if_runnable, is_spark
    from odfbuild.odf.queries import queries_of

    for _, transform in queries_of(definition.snapshot):
        found = None if is_spark(transform) else if_runnable(transform)
        for step in (found.queries or ()) if found else ():
            yield f"in Spark SQL{f', step {step.alias}' if step.alias else ''}:"
            yield from (f"  {line}" for line in step.query.splitlines())
