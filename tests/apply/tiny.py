"""A project of one root and one derivative, three records, driven through the real program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace

NO_JVM = {"ODFBUILD_JAVA_HOME": "/nonexistent"}

_PROJECT = """\
kind: Project
version: 1
content:
  name: tiny
  datasets: datasets
  state: chains
"""
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: data/*.csv
        order: ByName
      read:
        kind: Csv
        header: true
        schema:
          - event_time TIMESTAMP
          - id BIGINT
          - value BIGINT
      merge:
        kind: Ledger
        primaryKey: [id]
"""
_DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
        - datasetRef: {source}
          alias: source
      transform:
        kind: Sql
        engine: spark
        query: |
          {query}
"""
QUERY = "SELECT event_time, id, value * 10 AS value FROM source"
_FILES = {
    1: "event_time,id,value\n2024-01-01 00:00:00,1,1\n2024-01-02 00:00:00,2,2\n"
    "2024-01-03 00:00:00,3,3\n",
    2: "event_time,id,value\n2024-02-01 00:00:00,3,3\n2024-02-02 00:00:00,4,4\n",
}


@dataclass(frozen=True)
class Tiny:
    """A project folder."""

    root: Path

    @classmethod
    def fresh(cls, root: Path) -> Tiny:
        """The project with its first file, never applied."""
        (root / "datasets").mkdir(parents=True)
        (root / "data").mkdir()
        (root / "odfbuild.yaml").write_text(_PROJECT)
        (root / "datasets" / "root.yaml").write_text(_ROOT)
        tiny = cls(root)
        tiny.derive("derived", QUERY)
        tiny.arrive(1)
        return tiny

    def derive(self, name: str, query: str, source: str = "root") -> None:
        """Define a derivative of `source`."""
        text = _DERIVED.format(name=name, source=source, query=query)
        (self.root / "datasets" / f"{name}.yaml").write_text(text)

    def describe(self, name: str, text: str) -> None:
        """Add a description to a definition."""
        file = self.root / "datasets" / f"{name}.yaml"
        info = f"    - kind: SetInfo\n      description: {text}\n"
        file.write_text(file.read_text() + info)

    def arrive(self, number: int) -> None:
        """Put the file with that number (1: three records, 2: one old and one new) there."""
        (self.root / "data" / f"{number}.csv").write_text(_FILES[number])

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        process = self.start(*arguments, env=env)
        out, err = process.communicate(timeout=200)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, script: str | None = None
    ) -> subprocess.Popen[str]:
        """Start the program, or a Python `script` with these arguments."""
        entry = script or "from odfbuild.cli.main import main\nmain()"
        return subprocess.Popen(
            [sys.executable, "-c", entry, *arguments],
            cwd=self.root,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "160", **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def apply(self, expect: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Apply without asking; returns all that was said."""
        done = self.run("apply", "-y", env=env)
        said = done.stdout + done.stderr
        assert done.returncode == expect, said
        return said

    def workspace(self) -> Workspace:
        """The chains, read anew."""
        return Workspace(
            self.root / "chains", self.root / ".odfbuild-keys", self.root / ".odfbuild"
        )

    def events(self, name: str) -> list[Any]:
        """Events of a chain, oldest first."""
        store = self.workspace().dataset(name)
        head = store.head()
        assert head is not None
        return [block.event for _, block in store.walk(head)][::-1]

    def records(self, name: str) -> list[dict[str, Any]]:
        """Records of a dataset in order of offset, without `system_time`."""
        store = self.workspace().dataset(name)
        found: list[dict[str, Any]] = []
        for event in self.events(name):
            if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
                path = store.object_path("data", event.new_data.physical_hash)
                found += pq.ParquetFile(path).read().drop_columns(["system_time"]).to_pylist()
        return found

    def state(self) -> dict[str, tuple[list[str], Any, Timestamp | None, Any]]:
        """What must not depend on how a state was reached, for each dataset."""
        workspace = self.workspace()
        result = {}
        for name, now in workspace.projections().items():
            kinds = [type(event).__name__ for event in self.events(name)]
            source = now.source_state.value if now.source_state else None
            result[name] = (kinds, self.records(name), now.watermark, source)
        return result

    def ids(self, name: str) -> list[Any]:
        """The column `id`."""
        return [record["id"] for record in self.records(name)]
