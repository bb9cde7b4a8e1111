"""Small projects for tests, written as text."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

_CONFIG = (
    "kind: Project\nversion: 1\ncontent:\n  name: small\n  datasets: datasets\n  state: chains\n"
)


def write_project(root: Path, files: dict[str, str], config: str = "") -> Path:
    """A project with these files below `datasets`; `config` extends its odfbuild.yaml."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "odfbuild.yaml").write_text(_CONFIG + indent(dedent(config), "  "))
    (root / "datasets").mkdir(exist_ok=True)
    for name, text in files.items():
        file = root / "datasets" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def root_yaml(name: str, columns: str = "id BIGINT, city STRING", glob: str = "data/*.csv") -> str:
    """A source of CSV files with a header."""
    schema = "".join(f"\n          - {each.strip()}" for each in columns.split(","))
    return f"""kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: {glob}
        order: ByName
      read:
        kind: Csv
        header: true
        schema:{schema}
      merge:
        kind: Append
"""


def derived_yaml(name: str, source: str, query: str | None = None) -> str:
    """A dataset derived from one other, which the query calls `src`."""
    query = query or "SELECT event_time, id, city FROM src"
    return f"""kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
        - datasetRef: {source}
          alias: src
      transform:
        kind: Sql
        engine: spark
        query: |
{indent(query, " " * 10)}
"""


def listing(root: Path) -> dict[str, bytes]:
    """Every file below a folder and its bytes."""
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
