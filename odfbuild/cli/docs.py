"""`odfbuild docs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import JsonOptions, SelectionOptions, parse_time
from odfbuild.cli.output_file import write_output

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.site.site import Make, Site
    from odfbuild.survey.survey import Survey

docs = Group(help="Write or serve a data catalogue.")


_LACKS_LIBRARIES = (
    "The pages have no search, drawings of the graph or plots: this odfbuild was built without the "
    "libraries for them. Install a released wheel, or run `make site-libraries` in a checkout "
    "(needs npm), and build again."
)


@docs.command()
def build(
    state: Context,
    selection: SelectionOptions,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Write the pages into this folder (default: .odfbuild/site).",
        ),
    ] = None,
    single_page: Annotated[
        bool,
        typer.Option(
            "--single-page",
            help="Write one page without scripts; --out names a file, or - for stdout "
            "(default: .odfbuild/docs.html).",
        ),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Compute ages as of this time (default: now)."),
    ] = None,
    passports: Annotated[
        bool,
        typer.Option(
            "--passports",
            help="Also write the passport of each dataset (Croissant); reads data files once.",
        ),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Write a catalogue of the datasets as a folder of static HTML pages.

    Has search, the lineage graph, and a page for each dataset and run: schemas, column lineage,
    growth, checks, freshness, owners, queries and history. No server or network is needed to read
    it.
    """
    from odfbuild.survey.survey import choose

    moment = parse_time(at, "--at") if at else None
    if not single_page and out is not None and (str(out) == "-" or out.suffix == ".html"):
        raise typer.BadParameter(
            f"'{out}' is no folder; add --single-page to write one page", param_hint="--out"
        )
    if as_json and str(out) == "-":
        raise typer.BadParameter("the page itself goes to stdout", param_hint="--json")
    names, found = choose(state.directory, selection, state.given)
    if single_page:
        if passports:
            raise typer.BadParameter("one page has no files beside it", param_hint="--passports")
        return _build_page(state, found, names, moment, out, as_json)
    return _build_folder(state, found, names, moment, out, as_json, passports=passports)


def _build_folder(
    state: Context,
    found: Survey,
    names: frozenset[str],
    moment: Timestamp | None,
    out: Path | None,
    as_json: bool,
    *,
    passports: bool,
) -> int:
    from odfbuild.cli.output_folder import write_folder
    from odfbuild.project.resources import site_libraries
    from odfbuild.python_gc import paused_collector
    from odfbuild.wording import count

    folder = out or _cache(state) / "site"
    libraries = site_libraries()
    made, wrong = _passports(found, names) if passports else ({}, [])
    # Pages of thousands of datasets leave little that only the collector finds, and it looks often.
    with _site(found, names, moment, libraries, made) as site, paused_collector():
        written = write_folder(folder, site.files())
        faults = (*site.pages.faults, *wrong)
    if as_json:
        state.console.data(
            {
                "folder": str(folder),
                "datasets": len(names),
                "written": written.written,
                "unchanged": written.unchanged,
                "removed": written.removed,
            }
        )
    else:
        state.console.note(
            f"Wrote {count(len(names), 'dataset')} to {folder / 'index.html'}: "
            f"{count(written.written, 'file')} written, {written.unchanged} unchanged, "
            f"{written.removed} removed."
        )
        if not libraries:
            state.console.note(_LACKS_LIBRARIES)
    state.console.error(*faults)
    return exit_code_of(faults)


def _build_page(
    state: Context,
    found: Survey,
    names: frozenset[str],
    moment: Timestamp | None,
    out: Path | None,
    as_json: bool,
) -> int:
    from odfbuild.report.pages import render_pages
    from odfbuild.wording import count

    with _site(found, names, moment, {}) as site:
        made = [site.pages.of(name) for name in site.pages.names]
        ages = {page.name: site.standing.age(page.name) for page in made}
        status = {page.name: site.standing.status(page.name) for page in made}
        text = render_pages(site.project, made, status, ages, f"{str(site.at)[:19]}Z")
        faults = site.pages.faults
    if str(out) == "-":
        state.console.result(text)
    else:
        file = out or _cache(state) / "docs.html"
        write_output(file, lambda to: to.write(text.encode()))
        if as_json:
            state.console.data({"file": str(file), "datasets": len(made)})
        else:
            state.console.note(f"Wrote {count(len(made), 'dataset')} to {file}.")
    state.console.error(*faults)
    return exit_code_of(faults)


@docs.command()
def serve(
    state: Context,
    selection: SelectionOptions,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65_535, envvar="ODFBUILD_PORT", help="0: any free port."
        ),
    ] = 8080,
) -> int:
    """Serve the catalogue to browsers on this machine until Ctrl-C.

    Each page is made when it is asked for. Errors of the project are shown in its place.
    """
    from odfbuild.cli.serving import serve_files
    from odfbuild.project.resources import site_libraries
    from odfbuild.survey.survey import choose

    state.config()
    libraries = site_libraries()
    last: dict[str, Make] = {}

    def file(path: str) -> bytes | None:
        nonlocal last
        if path.endswith(".html") or not last:  # what a page refers to is as old as the page
            names, found = choose(state.directory, selection, state.given)
            with _site(found, names, None, libraries) as site:
                last = site.files()
                return last[path]() if path in last else None
        return last[path]() if path in last else None

    serve_files(
        port, file, lambda address: state.console.result(f"Serving {address} (Ctrl-C ends it)")
    )
    return 0


@contextmanager
def _site(
    found: Survey,
    names: frozenset[str],
    moment: Timestamp | None,
    libraries: Mapping[str, bytes],
    passports: Mapping[str, bytes] = {},
) -> Iterator[Site]:
    """The catalogue of these datasets at a time (default: now)."""
    from odfbuild.inspect.pages import Pages
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.site.site import Site
    from odfbuild.survey.decision_cache import remembered_lineages

    with remembered_lineages(found.project.config) as lineages:
        pages = Pages(found, names, lineages)
        at = moment or Timestamp.now()
        yield Site(pages=pages, at=at, libraries=libraries, passports=passports)


def _passports(
    found: Survey, names: frozenset[str]
) -> tuple[dict[str, bytes], list[OdfbuildError]]:
    """Passports of the datasets that have a chain, and why others have none."""
    from odfbuild.errors import OdfbuildError
    from odfbuild.exchange.passport.forms import PassportForm, passport

    made: dict[str, bytes] = {}
    wrong: list[OdfbuildError] = []
    for name in sorted(names & found.projections.keys()):
        present = found.renames.get(name, name)
        try:
            made[name] = passport(
                found.project.config, found.workspace, present, PassportForm.croissant
            )
        except OdfbuildError as error:
            wrong.append(error)
    return made, wrong


def _cache(state: Context) -> Path:
    """The folder of disposable files, made if it is not there."""
    from odfbuild.store.disposable import prepare_cache_folder

    cache = state.config().cache
    prepare_cache_folder(cache)
    return cache
