"""The same pipeline of N datasets as a project of odfbuild, dbt, SQLMesh or Snakemake.

    python benchmarks/generate.py --kind odf --n 1000 --out FOLDER

Half of the datasets are roots with a small CSV file, the others are derived from two inputs each,
in ten layers: the first input comes from the layer before, the second from anywhere above. The
same size always gives the same files.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

LAYERS = 10
FOLDER_SIZE = 100
ROWS = 10
COLUMNS = (
    ("event_time", "TIMESTAMP", "timestamp"),
    ("id", "BIGINT", "bigint"),
    ("region", "STRING", "varchar"),
    ("amount", "INT", "integer"),
    ("price", "DOUBLE", "double"),
    ("active", "BOOLEAN", "boolean"),
)


@dataclass(frozen=True)
class Node:
    """A dataset: `layer` 0 is a root."""

    number: int
    layer: int
    inputs: tuple[Node, ...] = ()

    @property
    def words(self) -> tuple[str, str]:
        return ("root" if self.layer == 0 else f"layer{self.layer:02}", f"{self.number:06}")

    @property
    def folder(self) -> str:
        return f"{self.words[0]}/{self.number // FOLDER_SIZE:03}"


def make_graph(size: int) -> list[Node]:
    """`size` nodes, inputs before what is derived from them."""
    choice = random.Random(size)
    nodes = [Node(number, 0) for number in range(size // 2)]
    before = list(nodes)
    derived = size - len(nodes)
    for layer in range(1, LAYERS + 1):
        count = derived // LAYERS + (layer <= derived % LAYERS)
        current = []
        for _ in range(count):
            first = choice.choice(before)
            second = choice.choice([node for node in choice.sample(nodes, 2) if node is not first])
            current.append(Node(len(nodes) + len(current), layer, (first, second)))
        nodes += current
        before = current or before
    return nodes


def write_odfbuild(nodes: list[Node], root: Path) -> None:
    """An odfbuild project."""
    _write(root / "odfbuild.yaml", "kind: Project\nversion: 1\ncontent:\n  name: benchmark\n")
    for node in nodes:
        name = "-".join(node.words)
        path = root / "datasets" / node.folder / f"{name}.yaml"
        if node.layer:
            _write(path, _derivative(node, name))
        else:
            _write(path, _root(name))
            _write(root / "data" / name / "part-0.csv", _csv(node))


def write_dbt(nodes: list[Node], root: Path) -> None:
    """A dbt project on DuckDB with the same graph."""
    _write(
        root / "dbt_project.yml",
        "name: benchmark\nversion: '1.0'\nconfig-version: 2\nprofile: benchmark\n"
        "flags:\n  send_anonymous_usage_stats: false\n",
    )
    _write(
        root / "profiles.yml",
        "benchmark:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n"
        "      path: benchmark.duckdb\n      threads: 4\n",
    )
    described: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        name = "_".join(node.words)
        kind = "models" if node.layer else "seeds"
        described[f"{kind}/{node.folder}"].append(node)
        if node.layer:
            refs = ["{{ ref('" + "_".join(source.words) + "') }}" for source in node.inputs]
            _write(root / kind / node.folder / f"{name}.sql", query(node, refs))
        else:
            _write(root / kind / node.folder / f"{name}.csv", _csv(node))
    for folder, members in described.items():
        _write(root / folder / "_properties.yml", _properties(folder.split("/")[0], members))


def write_sqlmesh(nodes: list[Node], root: Path) -> None:
    """A SQLMesh project on DuckDB with the same graph."""
    _write(
        root / "config.yaml",
        "gateways:\n  local:\n    connection:\n      type: duckdb\n"
        "      database: benchmark.duckdb\ndefault_gateway: local\n"
        "disable_anonymized_analytics: true\n"
        "model_defaults:\n  dialect: duckdb\n  start: 2026-01-01\n",
    )
    columns = ", ".join(f"{column} {sql}" for column, _, sql in COLUMNS)
    for node in nodes:
        name = "_".join(node.words)
        kind, text = "VIEW", ""
        if node.layer:
            text = "\n" + query(node, [f"bench.{'_'.join(input.words)}" for input in node.inputs])
        else:
            file = f"seeds/{node.folder}/{name}.csv"
            kind = f"SEED (path '$root/{file}')"
            _write(root / file, _csv(node))
        head = f"MODEL (\n  name bench.{name},\n  kind {kind},\n  columns ({columns})\n);\n"
        _write(root / "models" / node.folder / f"{name}.sql", head + text)


def write_snakemake(nodes: list[Node], root: Path) -> None:
    """A Snakemake workflow with the same graph: one rule, which looks its inputs up in a table.

    A rule for each dataset would take it many times longer.
    """
    tables = {}
    for node in nodes:
        name = "_".join(node.words)
        if node.layer:
            inputs = (
                ("out" if each.layer else "data", "_".join(each.words)) for each in node.inputs
            )
            tables[f"out/{name}.csv"] = [f"{folder}/{each}.csv" for folder, each in inputs]
        else:
            _write(root / "data" / f"{name}.csv", _csv(node))
    _write(root / "graph.json", json.dumps(tables, indent=1))
    _write(
        root / "Snakefile",
        "import json\n\nwith open('graph.json') as file:\n    INPUTS = json.load(file)\n\n"
        "rule all:\n    input: list(INPUTS)\n\n"
        "rule derive:\n    input: lambda wildcards: INPUTS[f'out/{wildcards.name}.csv']\n"
        "    output: 'out/{name}.csv'\n    shell: 'cat {input} > {output}'\n",
    )


WRITERS = {
    "odf": write_odfbuild,
    "dbt": write_dbt,
    "sqlmesh": write_sqlmesh,
    "snakemake": write_snakemake,
}


def query(node: Node, tables: list[str]) -> str:
    """What a dataset is derived by, from the relations called `tables`."""
    columns = ", ".join(column for column, _, _ in COLUMNS)
    least = node.number % 97
    parts = [f"SELECT {columns}\nFROM {table}\nWHERE amount >= {least}" for table in tables]
    return "\nUNION ALL\n".join(parts) + "\n"


def _csv(node: Node) -> str:
    choice = random.Random(node.number)
    lines = [",".join(column for column, _, _ in COLUMNS)]
    for row in range(ROWS):
        amount, price = choice.randrange(100), choice.randrange(100_000) / 100
        lines.append(f"2026-01-{row + 1:02} 00:00:00,{row},north,{amount},{price},true")
    return "\n".join(lines) + "\n"


def _root(name: str) -> str:
    schema = "\n".join(f"          - {column} {odf}" for column, odf, _ in COLUMNS)
    return f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: data/{name}/*.csv
        order: ByName
      read:
        kind: Csv
        header: true
        schema:
{schema}
      merge:
        kind: Ledger
        primaryKey:
          - id
    - kind: SetInfo
      description: Root {name}
      keywords:
        - benchmark
"""


def _derivative(node: Node, name: str) -> str:
    names = ["-".join(input.words) for input in node.inputs]
    inputs = "\n".join(
        f"        - datasetRef: {input}\n          alias: {input}" for input in names
    )
    text = query(node, [f"`{input}`" for input in names]).replace("\n", "\n          ").rstrip()
    return f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
{inputs}
      transform:
        kind: Sql
        engine: spark
        query: |
          {text}
    - kind: SetInfo
      description: Derivative {name}
      keywords:
        - benchmark
"""


def _properties(kind: str, members: list[Node]) -> str:
    lines = ["version: 2", f"{kind}:"]
    for node in members:
        lines += [f"  - name: {'_'.join(node.words)}", "    description: Benchmark", "    columns:"]
        for column, _, sql in COLUMNS:
            lines += [f"      - name: {column}", f"        data_type: {sql}"]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    """Write one project."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", required=True, choices=list(WRITERS))
    parser.add_argument("--n", required=True, type=int)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    WRITERS[options.kind](make_graph(options.n), options.out)


if __name__ == "__main__":
    main()
