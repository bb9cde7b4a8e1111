"""Where records come from, drawn as a tree down to the files: HTML without scripts. Pure.

`provenance_fragment` is what notebooks and pages show, `provenance_page` a page of its own. Both
show records, so pages of a site ask `Showing` which datasets and columns may appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from odfbuild.records.ranges import size_of
from odfbuild.report.forms.drawing import Node, draw
from odfbuild.report.forms.html import render_page
from odfbuild.report.records.provenance import column_rows, notes_of, records_of, sample_of
from odfbuild.report.records.table import cells, numeric_columns
from odfbuild.values import Value
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.verify.provenance import BlockRecords, TracedRecords

Allowed = Callable[[str, Sequence[str]], Sequence[str]]
"""From a dataset and its columns to those that may be shown."""


def _all(_: str, columns: Sequence[str]) -> Sequence[str]:
    return columns


class _Branch(Value):
    """Records of one dataset in the tree, as text."""

    name: str
    which: str
    notes: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]
    columns: tuple[tuple[str, str], ...]
    inputs: tuple[_Branch, ...]
    drawing: str


def provenance_fragment(trees: Sequence[TracedRecords], allowed: Allowed = _all) -> str:
    """A drawing and a tree for each record; of records only the columns that are `allowed`."""
    branches = [_branch(each, allowed, drawing=_drawing(each)) for each in trees]
    return render_page("provenance.html.j2", {}, trees=branches)


def provenance_page(trees: Sequence[TracedRecords]) -> str:
    """The same as a page of its own."""
    return render_page(
        "provenance_page.html.j2",
        {},
        dataset=trees[0].dataset if trees else "no record",
        fragment=provenance_fragment(trees),
    )


def _branch(each: TracedRecords, allowed: Allowed, drawing: str = "") -> _Branch:
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numbers: frozenset[int] = frozenset()
    notes = [*notes_of(each)]
    sample = sample_of(each)
    if sample is not None and (columns := allowed(each.dataset, sample.column_names)):
        shown = sample.select(list(columns))
        header, numbers = tuple(columns), numeric_columns(shown.schema)
        rows = tuple(map(tuple, cells(shown, each.vocab.operation_type)))
        if size_of(each.records) > shown.num_rows:
            notes.append(f"the first {count(shown.num_rows, 'record')}:")
    inputs = tuple(_branch(origin, allowed) for origin in each.inputs)
    return _Branch(
        each.dataset,
        records_of(each),
        tuple(notes),
        header,
        rows,
        numbers,
        tuple(column_rows(each)),
        inputs,
        drawing,
    )


def _drawing(tree: TracedRecords) -> str:
    """Datasets and files as boxes, sources on the left."""
    notes: dict[str, str] = {}
    inputs: dict[str, list[str]] = {}
    for each in _walk(tree):
        notes.setdefault(each.dataset, records_of(each))
        files = [_file(piece) for piece in each.pieces if piece.source is not None]
        notes |= dict.fromkeys(files, f"read by {each.dataset}")
        inputs.setdefault(each.dataset, [])
        inputs[each.dataset] += [*(origin.dataset for origin in each.inputs), *files]
    nodes = [Node(name=name, note=note) for name, note in notes.items()]
    return draw(nodes, inputs, f"Where {records_of(tree)} of {tree.dataset} comes from")


def _walk(tree: TracedRecords) -> Iterator[TracedRecords]:
    yield tree
    for each in tree.inputs:
        yield from _walk(each)


def _file(piece: BlockRecords) -> str:
    """The file that a block was read from, as far as the chain says."""
    source, state = piece.source or "", piece.state
    # Of several files, the state of the source is the name of the last one that was read.
    if state is not None and "*" in source:
        return str(PurePosixPath(source).parent / state.value)
    return source
