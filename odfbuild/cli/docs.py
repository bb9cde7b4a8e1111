"""`odfbuild docs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    ExcludeOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    parse_time,
    selection_of,
)
from odfbuild.cli.output_file import write_output

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.graph.selection import Selection
    from odfbuild.odf.timestamp import Timestamp

docs = typer.Typer(help="Show the datasets of the project to others.", no_args_is_help=True)


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
    state: Context = context.obj
    moment = parse_time(at, "--at") if at else None
    wanted = selection_of(select, exclude, selector, datasets)
    text, number, faults = _page(state, wanted, moment)
    if str(out) == "-":
        state.console.result(text)
        state.console.error(*faults)
        return 1 if faults else 0
    file = out
    if file is None:
        from odfbuild.store.disposable import prepare_cache_folder

        cache = state.config().cache
        prepare_cache_folder(cache)
        file = cache / "docs.html"
    write_output(file, lambda to: to.write(text.encode()))
    state.console.note(f"Wrote {number} to {file}.")
    state.console.error(*faults)
    return 1 if faults else 0


@docs.command()
def serve(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65_535, envvar="ODFBUILD_PORT", help="0: any that is free."
        ),
    ] = 8080,
) -> int:
    """Show the catalogue to browsers of this machine, made anew for each request; Ctrl-C ends it.

    A mistake in the project is shown in place of the page until it is mended.
    """
    from odfbuild.cli.serving import serve_page

    state: Context = context.obj
    wanted = selection_of(select, exclude, selector, datasets)
    state.config()
    serve_page(
        port,
        lambda: _page(state, wanted, None)[0],
        lambda address: state.console.result(f"Serving {address} (Ctrl-C ends it)"),
    )
    return 0


def _page(
    state: Context, wanted: Selection, moment: Timestamp | None
) -> tuple[str, str, list[OdfbuildError]]:
    """The page at a time (default: now), how many datasets are on it, what is wrong with some."""
    from odfbuild.inspect.pages import pages
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.datasets import statuses
    from odfbuild.report.freshness import ages_of
    from odfbuild.report.pages import render_pages
    from odfbuild.survey.survey import choose
    from odfbuild.wording import count

    now = moment or Timestamp.now()
    names, found = choose(state.directory, wanted, state.given)
    config = found.project.config
    made = pages(found, sorted(names))
    watermarks = {page.name: page.state.watermark if page.state else None for page in made}
    ages = {each.name: each for each in ages_of(watermarks, config.freshness, now)}
    text = render_pages(config.name, made, statuses(found.plan), ages, f"{str(now)[:19]}Z")
    return text, count(len(made), "dataset"), [page.fault for page in made if page.fault]
