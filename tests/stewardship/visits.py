"""A project whose visits grow by a batch a month, two derivatives of it, and a clock that moves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, Said, share

START = datetime(2024, 1, 1, 12, tzinfo=UTC)

SETTINGS = """\
kind: Project
version: 1
content:
  name: visits
  storage: ../storage
  repositories: {acme: {url: ../acme}}
  publish: [{match: ["*"], to: acme}]
  retain: [{match: [visits, named], keep: 100d}]
  tables: [{match: [visits], format: parquet, location: ../tables}]
"""
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: visits
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "data/*.csv", order: ByName}
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, city STRING]
      merge: {kind: Append}
"""
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: visits}}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""
NAMED = "SELECT event_time, UPPER(city) AS city FROM visits"
DAILY = (
    "SELECT window.start AS event_time, city, COUNT(*) AS visits FROM visits "
    "GROUP BY window(event_time, '1 day'), city"
)
TOTALS = "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM visits GROUP BY city"


@dataclass
class Visits:
    """The project in `root`; `month` counts the batches that arrived."""

    root: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    month: int = 0

    @classmethod
    def fresh(
        cls,
        folder: Path,
        engine: Engine,
        patch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> Visits:
        """The project without data."""
        share(engine, patch)
        made = cls(folder / "visits", patch, capsys)
        (made.root / "datasets").mkdir(parents=True)
        (made.root / "data").mkdir()
        (made.root / "odfbuild.yaml").write_text(SETTINGS)
        (made.root / "datasets" / "visits.yaml").write_text(ROOT)
        made.derive("named", NAMED)
        made.derive("daily", DAILY)
        return made

    def derive(self, name: str, query: str) -> None:
        """Define a derivative of `visits`."""
        text = DERIVATIVE.format(name=name, query=query)
        (self.root / "datasets" / f"{name}.yaml").write_text(text)

    def clock(self, days: float = 0) -> None:
        """It is `days` after the last batch."""
        now = START + timedelta(days=30 * self.month + days)
        at = Timestamp.parse(now.isoformat())
        self.patch.setattr(Timestamp, "now", classmethod(lambda _: at))

    def arrive(self, months: int = 1) -> None:
        """Months go by, with three visits each, and all is applied."""
        for _ in range(months):
            self.month += 1
            day = (START + timedelta(days=30 * self.month)).strftime("%Y-%m-%d")
            rows = "".join(f"{day}T0{n}:00:00Z,{c}\n" for n, c in enumerate("aab", 1))
            (self.root / "data" / f"{self.month:03}.csv").write_text(f"event_time,city\n{rows}")
            self.clock()
            self.run("apply", "-y", "--no-publish")

    def run(self, *arguments: str) -> Said:
        """A command that must succeed."""
        return self("ok", *arguments)

    def __call__(self, how: str, *arguments: str) -> Said:
        program = Program(self.root, self.patch, self.capsys)
        return program.ok(*arguments) if how == "ok" else program(*arguments)

    def other(self, name: str) -> Visits:
        """Another project that knows the same repository, and nothing else."""
        made = Visits(self.root.parent / name, self.patch, self.capsys, self.month)
        (made.root / "datasets").mkdir(parents=True)
        (made.root / "odfbuild.yaml").write_text(
            f"kind: Project\nversion: 1\ncontent:\n  name: {name}\n"
            "  repositories: {acme: {url: ../acme}}\n"
        )
        return made

    def published(self) -> int:
        """How many records the published table of visits has."""
        newest = max((self.root.parent / "tables" / "visits" / "states").iterdir())
        return sum(each["records"] for each in json.loads(newest.read_text())["files"])

    def objects(self, name: str = "visits") -> int:
        """How many data objects of a dataset lie in the project."""
        return len(list((self.root / "chains" / name / "data").iterdir()))
