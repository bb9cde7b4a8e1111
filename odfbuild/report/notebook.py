"""What notebooks show of projects, datasets, plans, graphs, verdicts and provenance. Pure.

HTML without scripts and without colours of its own, so that it suits light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.report.forms.drawing import Node, draw
from odfbuild.report.forms.html import render_page
from odfbuild.report.records.table import cells, numeric_columns
from odfbuild.wording import count

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.inspect.verify.provenance import TracedRecords
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.plan.model import Plan

MOST = 50
"""So many rows, or datasets of a drawing, are shown."""

Table = tuple[Sequence[str], Sequence[Sequence[str]], Iterable[int]]
"""Header, rows, and which columns are flush right."""


def _fragment(
    title: str, *notes: str, tables: Sequence[Table] = (), drawing: str | None = None
) -> str:
    return render_page(
        "notebook.html.j2", {}, title=title, notes=notes, tables=tables, drawing=drawing
    )


def project_html(name: str, states: Mapping[str, Projection], graph: Graph) -> str:
    """Its datasets with what they hold, and how they derive from each other."""
    names = list(dict.fromkeys([*graph.inputs, *states]))
    rows = [
        (each, state.kind.name.lower(), f"{state.records:,}", str(state.watermark or ""))
        if (state := states.get(each))
        else (each, "", "", "never applied")
        for each in names[:MOST]
    ]
    table = (("dataset", "kind", "records", "watermark"), rows, (2,))
    return _fragment(
        f"{name}: {count(len(names), 'dataset')}",
        *_more(len(names), "dataset"),
        tables=[table],
        drawing=_drawing(graph.inputs),
    )


def graph_html(graph: Graph) -> str:
    """Which datasets derive from which, as a drawing."""
    title = count(len(graph.inputs), "dataset")
    drawing = _drawing(graph.inputs)
    large = () if drawing else ("too many to draw here: `odfbuild docs build` draws parts of it",)
    return _fragment(title, *large, drawing=drawing)


def dataset_html(citation: str, schema: pa.Schema, first: pa.Table, records: int) -> str:
    """Its pin, its columns with their types, and its first records."""
    header = [f"{field.name} ({field.type})" for field in schema]
    table = (header, cells(first), numeric_columns(schema))
    more = records - first.num_rows
    return _fragment("", citation, *_count_of_more(more), tables=[table])


def records_html(found: pa.Table, *notes: str) -> str:
    """The answer of a query: its first rows, and how many there are."""
    shown = found.slice(0, MOST)
    table = (found.column_names, cells(shown), numeric_columns(found.schema))
    rows = count(found.num_rows, "row")
    return _fragment("", *notes, rows, *_more(found.num_rows, "row"), tables=[table])


def plan_html(plan: Plan) -> str:
    """What happens to which dataset, and why it is refused."""
    from odfbuild.report.plan.view import view

    found = view(plan)
    shown = found.rows[:MOST]
    refused = any(row.refusal for row in shown)
    rows = [
        (row.sign, row.name, row.what, *([row.refusal.message if row.refusal else ""] * refused))
        for row in shown
    ]
    header = ("", "dataset", "what", *(["refused because"] * refused))
    tables = [(header, rows, ())] if rows else []
    notes = (found.head, *_more(len(found.rows), "dataset"), *found.publishing)
    return _fragment(found.title, *notes, tables=tables)


def verdict_html(verdict: Verdict) -> str:
    """All that verification found wrong, or what it looked at."""
    again = verdict.reproduction
    done = (
        "Only integrity was checked; no step was recomputed."
        if again is None
        else f"{count(again.steps, 'step')} of {count(again.derivatives, 'derivative')} recomputed."
    )
    findings = verdict.findings
    notes = [f"{each.dataset} was not recomputed: {each.message}" for each in verdict.unchecked]
    if verdict.excused:
        from odfbuild.report.findings.verification import excuse_line

        notes += map(excuse_line, verdict.excused)
    if not findings:
        return _fragment("All blocks and objects are intact.", done, *notes)
    rows = [(each.dataset, each.code, each.message, each.help) for each in findings[:MOST]]
    table = (("dataset", "code", "finding", "what to do"), rows, ())
    title = f"{count(len(findings), 'finding')}"
    return _fragment(title, done, *notes, *_more(len(findings), "finding"), tables=[table])


def provenance_html(tree: TracedRecords) -> str:
    """Where records come from, as a drawing and a tree."""
    from odfbuild.report.records.provenance_html import provenance_fragment

    return provenance_fragment([tree])


def _drawing(inputs: Mapping[str, Sequence[str]]) -> str | None:
    names = dict.fromkeys([*inputs, *(each for found in inputs.values() for each in found)])
    if not names or len(names) > MOST:
        return None
    return draw([Node(name=each) for each in names], inputs, "Which datasets derive from which")


def _more(found: int, noun: str) -> Sequence[str]:
    return _count_of_more(found - MOST, noun)


def _count_of_more(more: int, noun: str = "record") -> Sequence[str]:
    return [f"{count(more, f'more {noun}')} not shown"] if more > 0 else []
