"""Columns of text."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.report.forms.markdown import escaped
from odfbuild.report.forms.visible import visible

WIDEST = 40
"""Cells are cut after so many characters."""


def render_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()
) -> str:
    """Rows under their header, two spaces apart; the columns in `right` end flush."""
    cells = [[_cut(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()
) -> str:
    """The same in Markdown, with whole cells."""
    rule = ["---:" if index in right else "---" for index in range(len(header))]
    titles = [title.lower() for title in header]
    return "\n".join(
        f"| {' | '.join(cells)} |"
        for cells in (titles, rule, *([escaped(cell) for cell in row] for row in rows))
    )


def _cut(cell: str) -> str:
    flat = visible(cell.replace("\n", "\\n"))
    return flat if len(flat) <= WIDEST else flat[: WIDEST - 1] + "…"
