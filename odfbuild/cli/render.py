"""`odfbuild render`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import (
    ApproveOption,
    AsOfOption,
    JsonOptions,
    SelectionOptions,
    may_overwrite,
)
from odfbuild.errors import Location
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.project.model import Definition


def render(
    state: Context,
    selection: SelectionOptions,
    *,
    as_of: AsOfOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write one file for each dataset to this folder."
        ),
    ] = None,
    auto_approve: ApproveOption = False,
    as_json: JsonOptions,
) -> int:
    """Print definitions with templates rendered and short forms written out.

    --as-of shows the definitions that the chains had at an earlier time. --out asks before it
    overwrites different files whose current text is in no Git commit. What a template was rendered
    to is shown beside errors, too.
    """
    from odfbuild.cli.output_file import write_output
    from odfbuild.wording import count

    wanted, wrong = (
        _read(state, selection) if as_of is None else (_in_force(state, selection, as_of), _Wrong())
    )
    if as_json:
        from odfbuild.odf.yaml_form import to_manifest

        state.console.data([to_manifest(each.snapshot) for each in wanted])
    elif out is None and (wanted or not wrong.errors):
        state.console.document("---\n".join(map(_text, wanted)) or "There are no datasets.")
    if out is not None:
        texts = {out / f"{each.name}.yaml": _text(each).encode() for each in wanted}
        different = [file for file, text in texts.items() if _differs(file, text)]
        if not may_overwrite(state.console, different, auto_approve):
            return 1
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_output(file, partial(_put, text))
        state.console.note(f"Wrote {count(len(wanted), 'file')} to {out}.")
    state.console.error(*wrong.errors)
    for place, rendered in wrong.rendered.items():
        state.console.note(f"\n{place} was rendered as:\n{_numbered(rendered)}")
    return exit_code_of(wrong.errors)


class _Wrong(Value):
    """What is wrong with definitions, and what wrong templates were rendered to, by their place."""

    errors: Sequence[OdfbuildError] = ()
    rendered: Mapping[str, str] = field(default_factory=dict)


def _numbered(text: str) -> str:
    lines = text.splitlines()
    width = len(str(len(lines)))
    return "\n".join(f"{number:{width}} | {line}" for number, line in enumerate(lines, 1))


def _differs(file: Path, text: bytes) -> bool:
    """Whether there is such a file, and it holds something else."""
    try:
        return file.read_bytes() != text
    except FileNotFoundError:
        return False


def _put(text: bytes, to: IO[bytes]) -> None:
    to.write(text)


def _read(state: Context, selection: Selection) -> tuple[list[Definition], _Wrong]:
    """The chosen definitions that are right, and what is wrong with the others."""
    from odfbuild.survey.definitions import look_at_definitions

    chosen = state.chosen(selection)
    read = look_at_definitions(state.directory, state.given)
    right = [d for d in read.project.definitions if chosen is None or d.name in chosen]
    rendered = {
        str(Location(each.file, instance=each.instance)): each.rendered
        for each in read.project.wrong
        if each.rendered is not None and (chosen is None or each.label in chosen)
    }
    return right, _Wrong(read.faults_of(chosen), rendered)


def _in_force(state: Context, selection: Selection, as_of: str) -> list[Definition]:
    """What chains amounted to as definitions, where each stands in its chain."""
    from odfbuild.plan.changes.committed import committed_snapshot
    from odfbuild.project.model import Definition

    known = state.workspace().readable().items()
    aliases = {each.dataset_id: name for name, each in known}
    return [
        Definition(
            content=committed_snapshot(name, each, aliases),
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
    from odfbuild.odf.queries import queries_of
    from odfbuild.sql.translate.runnable import if_runnable, is_spark

    for _, transform in queries_of(definition.snapshot):
        found = None if is_spark(transform) else if_runnable(transform)
        for step in (found.queries or ()) if found else ():
            yield f"in Spark SQL{f', step {step.alias}' if step.alias else ''}:"
            yield from (f"  {line}" for line in step.query.splitlines())
