"""`odfbuild docs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions, SelectionOptions, parse_time
from odfbuild.cli.output_file import write_output

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.graph.selection import Selection
    from odfbuild.odf.timestamp import Timestamp

docs = Group(help="Write or serve a data catalogue.")


@docs.command()
def build(
    context: typer.Context,
    selection: SelectionOptions,
    *,
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
        typer.Option("--at", metavar="TIME", help="Compute ages as of this time (default: now)."),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Write a catalogue of the datasets as one HTML page.

    Shows schemas, lineage, freshness, checks, owners, last changes and history.
    """
    from odfbuild.wording import count

    state: Context = context.obj
    moment = parse_time(at, "--at") if at else None
    wanted = selection
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
    if as_json:
        state.console.data({"file": str(file), "datasets": number})
    else:
        state.console.note(f"Wrote {count(number, 'dataset')} to {file}.")
    state.console.error(*faults)
    return 1 if faults else 0


@docs.command()
def serve(
    context: typer.Context,
    selection: SelectionOptions,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65_535, envvar="ODFBUILD_PORT", help="0: any free port."
        ),
    ] = 8080,
) -> int:
    """Serve the catalogue to browsers on this machine until Ctrl-C.

    The page is rebuilt for each request. Errors of the project are shown in its place.
    """
    from odfbuild.cli.serving import serve_page

    state: Context = context.obj
    wanted = selection
    state.config()
    serve_page(
        port,
        lambda: _page(state, wanted, None)[0],
        lambda address: state.console.result(f"Serving {address} (Ctrl-C ends it)"),
    )
    return 0


def _page(
    state: Context, wanted: Selection, moment: Timestamp | None
) -> tuple[str, int, list[OdfbuildError]]:
    """The page at a time (default: now), how many datasets are on it, what is wrong with some."""
    from odfbuild.inspect.pages import pages
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.datasets import statuses
    from odfbuild.report.freshness import ages_of
    from odfbuild.report.pages import render_pages
    from odfbuild.survey.survey import choose

    now = moment or Timestamp.now()
    names, found = choose(state.directory, wanted, state.given)
    config = found.project.config
    made = pages(found, sorted(names))
    watermarks = {page.name: page.state.watermark if page.state else None for page in made}
    ages = {each.name: each for each in ages_of(watermarks, config.freshness, now)}
    text = render_pages(config.name, made, statuses(found.plan), ages, f"{str(now)[:19]}Z")
    return text, len(made), [page.fault for page in made if page.fault]
