"""`odfbuild docs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import (
    Context,
    ExcludeOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    parse_time,
    selection_of,
)

docs = typer.Typer(help="Show the datasets of the project to others.", no_args_is_help=True)


@docs.callback()
def _group() -> None:
    """Show the datasets of the project to others."""


@docs.command()
def build(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the page to this file, or - (default: .odfbuild/docs.html).",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Tell ages at this time (default: now)."),
    ] = None,
) -> int:
    """Write a catalogue of the datasets as one HTML page that needs nothing else.

    Schemas, lineage, freshness, checks, who changed what last, and histories.
    """
    from odfbuild.apply.pages import pages
    from odfbuild.apply.survey import choose
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.project.freshness import max_age
    from odfbuild.report.freshness import age_of
    from odfbuild.report.listing import statuses
    from odfbuild.report.pages import render_pages
    from odfbuild.report.words import count
    from odfbuild.store.disposable import prepare_cache_folder

    state: Context = context.obj
    now = parse_time(at, "--at") if at else Timestamp.now()
    wanted = selection_of(select, exclude, selector, datasets)
    names, found = choose(state.directory, wanted, state.given)
    config = found.project.config
    made = pages(found, sorted(names))
    ages = {
        page.name: age_of(
            page.name,
            page.state.watermark if page.state else None,
            now,
            max_age(config.freshness, page.name),
        )
        for page in made
    }
    text = render_pages(config.name, made, statuses(found.plan), ages, f"{str(now)[:19]}Z")
    if str(out) == "-":
        state.console.result(text)
        return 0
    if out is None:
        prepare_cache_folder(config.cache)
    file = config.cache / "docs.html" if out is None else out
    _write(file, text)
    state.console.note(f"Wrote {count(len(made), 'dataset')} to {file}.")
    return 0


def _write(file: Path, text: str) -> None:
    from odfbuild.errors import EnvironmentProblem

    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(
            f"{file} cannot be written: {error.strerror}",
            code="E0910",
            help="give a file in a folder that exists and that you may write to",
        ) from None
