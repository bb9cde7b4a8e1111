"""Execute the notebook of the example: `python -m tests.example.notebook PROJECT` updates outputs.

PROJECT is a copy of the example that was applied. What differs from one build to the next
(identities, hashes, times of today) is not compared.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "example_project" / "flights.ipynb"
_CHANGES = {
    r"did:odf:\w+": "did:odf:…",
    r"\bf1620[0-9a-f]{8,}": "HASH",
    r"(block #\d+ )[0-9a-f]{8}, \d{4}-\d\d-\d\d": r"\1HASH, DAY",
    r"committed [\d:.TZ-]+": "committed TIME",
    r"DuckDB [\d.]+": "DuckDB",
}


def executed(project: Path) -> Any:
    """The notebook after all its cells ran in a kernel of their own, in the folder `project`."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": project}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    return notebook


def outputs(notebook: Any) -> list[list[str]]:
    """What each cell shows, without what changes: HTML where there is some, otherwise text."""
    return [
        [_told(each) for each in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _told(output: Any) -> str:
    data = output.get("data", {})
    text = data.get("text/html") or data.get("text/plain") or output.get("text") or str(output)
    for pattern, replacement in _CHANGES.items():
        text = re.sub(pattern, replacement, text)
    return str(text)


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(Path(sys.argv[1])), NOTEBOOK)
