"""What the page of a dataset shows. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from odfbuild.odf.model import AddPushSource, SetPollingSource, SetTransform
from odfbuild.odf.records import records_to_data
from odfbuild.odf.yaml_form import to_data
from odfbuild.report.forms.drawing import Node, draw
from odfbuild.report.forms.yaml_text import yaml_lines
from odfbuild.report.site.paths import dataset_path
from odfbuild.report.site.standing import Standing
from odfbuild.values import Value

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

    from odfbuild.inspect.pages import Page, Point
    from odfbuild.inspect.samples import Sample

MOST = 100
"""So many names, runs and parts of anything else are listed; a page stays small."""

_COLUMNS = 500
_POINTS = 500
_TEXT = 60_000
"""Characters of a text that somebody else wrote."""

_CELL = 200
"""Characters of a value of a record."""

_SHOWN_COLUMNS = 100
"""Columns of the sample."""

_USES = 20
"""Uses of a column."""

_DRAWN = 12
"""Neighbours on either side in the drawing that needs no scripts."""


class Text(Value, kw_only=True):
    """A text of the dataset under a name, and whether more was left out."""

    name: str
    text: str
    cut: bool


def dataset_page(standing: Standing, page: Page) -> dict[str, Any]:
    """The values that the template shows."""
    readme, attachments = _attachments(page)
    return {
        "page": page,
        "age": standing.age(page.name),
        "most": MOST,
        "readme": readme,
        "attachments": attachments,
        "neighbours": _neighbours(standing, page),
        "columns": page.columns[:_COLUMNS],
        "described": any(each.description for each in page.columns[:_COLUMNS]),
        "lineage": _lineage(page),
        "used": _used(page),
        "points": _thinned(page.points),
        "sources": _sources(page),
        "queries": [(each, clipped("query", yaml_of(each.event))) for each in page.queries[-MOST:]],
        "ways": ways_in(page),
        "sample": _sample(page.sample),
    }


class SampleTable(Value, kw_only=True):
    """Newest records and statistics of columns as text, and which columns hold numbers."""

    names: list[str]
    rows: list[list[str]]
    statistics: list[tuple[str, str, str, str, str]]
    counted: int


def _sample(sample: Sample | None) -> SampleTable | None:
    if sample is None or sample.records is None:
        return None
    total = max(sample.counted, 1)
    names = sample.records.column_names[:_SHOWN_COLUMNS]
    return SampleTable(
        names=names,
        rows=[[_cell(row[name]) for name in names] for row in records_to_data(sample.records)],
        statistics=[
            (
                each.column,
                f"{100 * each.missing / total:.1f} %",
                _cell(each.least),
                _cell(each.most),
                "" if each.distinct is None else f"{each.distinct:,}",
            )
            for each in sample.statistics[:_SHOWN_COLUMNS]
        ],
        counted=sample.counted,
    )


def _cell(value: Any) -> str:
    """A value as bounded text."""
    text = "" if value is None else str(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def clipped(name: str, text: str) -> Text:
    """A text of bounded length."""
    return Text(name=name, text=text[:_TEXT], cut=len(text) > _TEXT)


def yaml_of(event: SetPollingSource | AddPushSource | SetTransform) -> str:
    """An event as YAML-like lines."""
    return "\n".join(yaml_lines({k: v for k, v in to_data(event).items() if k != "kind"}))


def _attachments(page: Page) -> tuple[str | None, list[Text]]:
    """The readme as HTML, and all other files."""
    readme, others = None, []
    for each in page.attachments[:MOST]:
        text = clipped(each.path, each.content)
        if readme is None and each.path.rpartition("/")[2].lower() in ("readme.md", "readme"):
            readme = rendered(text.text)
        else:
            others.append(text)
    return readme, others


def _neighbours(standing: Standing, page: Page) -> str | None:
    inputs, readers = page.inputs[:_DRAWN], page.readers[:_DRAWN]
    if not inputs and not readers:
        return None

    def node(name: str) -> Node:
        here = " here" if name == page.name else ""
        note = standing.status(name)
        href = f"../{dataset_path(name)}"
        return Node(name=name, href=href, classes=f"{standing.tone(name)}{here}", note=note)

    edges = {page.name: inputs, **dict.fromkeys(readers, (page.name,))}
    nodes = [node(name) for name in dict.fromkeys((*inputs, page.name, *readers))]
    return draw(nodes, edges, f"Datasets that {page.name} reads, and that read it")


def _lineage(page: Page) -> dict[str, Any] | None:
    """Edges from columns of inputs to those of this dataset, and on to those of its readers."""
    edges = [
        [each.dataset, each.column, page.name, column, each.how.value]
        for column, origins in (page.origins.columns if page.origins else {}).items()
        for each in origins
    ]
    edges += [
        [page.name, each.column, use.reader, column, each.how.value]
        for use in page.used_by
        for column, origins in use.origins.columns.items()
        for each in origins
        if each.dataset == page.name
    ]
    return {"name": page.name, "edges": edges[:2000]} if edges else None


class MadeColumn(Value, kw_only=True):
    """A column that is made from another one, in several readers if they are of one template."""

    column: str
    readers: tuple[str, ...]
    template: str | None


def _used(page: Page) -> dict[str, list[MadeColumn]]:
    """For each column, the columns of readers that are made from it."""
    found: dict[str, dict[tuple[str, str], MadeColumn]] = {}
    for use in page.used_by:
        for column, origins in use.origins.columns.items():
            for source in {each.column for each in origins if each.dataset == page.name}:
                made = found.setdefault(source, {})
                key = (use.template or use.reader, column)
                if key in made:
                    made[key] = replace(made[key], readers=(*made[key].readers, use.reader))
                elif len(made) < _USES:
                    made[key] = MadeColumn(
                        column=column, readers=(use.reader,), template=use.template
                    )
    return {source: list(made.values()) for source, made in found.items()}


def _thinned(points: Sequence[Point]) -> str | None:
    """Totals after each step as JSON, of at most so many steps; the last one is among them."""
    if not points:
        return None
    return json.dumps(list(_totals(points)), separators=(",", ":"))


def _totals(points: Sequence[Point]) -> Iterator[list[Any]]:
    records = taken = 0
    every = -(-len(points) // _POINTS)
    for number, each in enumerate(points, 1):
        records, taken = records + each.records, taken + each.bytes
        if number % every == 0 or number == len(points):
            watermark = each.watermark.millis / 1000 if each.watermark else None
            yield [each.block, each.time.millis / 1000, records, taken, watermark]


def _sources(page: Page) -> list[Text]:
    """What a root reads, as it is defined or else committed."""
    events = page.definition.snapshot.metadata if page.definition else ()
    kinds = (SetPollingSource, AddPushSource)
    found = [each for each in events if isinstance(each, kinds)]
    if not found and page.state is not None:
        polled = [page.state.polling_source] if page.state.polling_source else []
        found = [*polled, *page.state.push_sources.values()]
    return [clipped(each.KIND, yaml_of(each)) for each in found[:MOST]]


# --- Markdown ---


def rendered(text: str) -> str:
    """Markdown as HTML; tags are shown as text, images as links."""
    return str(_renderer().render(text))


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Links that run scripts are left as text by the library; what is no link stays as it is.
    return MarkdownIt("js-default", {"html": False, "maxNesting": 20}).disable("image")


# --- Ways to read ---


def ways_in(page: Page) -> list[tuple[str, str]]:
    """Names of tools and what to type; nothing before there are records."""
    if page.state is None or not page.state.records:
        return []
    name, block = page.name, page.state.head
    dataset = f'Project()["{name}"].at("{block}")'
    head = "from odfbuild import Project\n\n"
    return [
        ("Python", f"{head}records = {dataset}\nprint(records.pin)\nrecords.head()"),
        ("DuckDB", f"{head}{dataset}.to_duckdb().limit(10).fetchall()"),
        ("polars", f"{head}{dataset}.to_polars()"),
        ("Spark", f"odfbuild sql --as-of {block} \\\n  'SELECT * FROM `{name}` LIMIT 10'"),
        ("Command line", f"odfbuild tail --as-of {block} {name}"),
    ]
