"""Records that are pushed are encrypted, and compared with encrypted ones, like those of files."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.personal.shop import Shop, files_with, machine

pytestmark = pytest.mark.spark

_PEOPLE = """\
kind: DatasetSnapshot
version: 1
content:
  name: people
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: s
      read: {kind: NdJson, schema: [event_time TIMESTAMP, id STRING, email STRING]}
      merge: {kind: UpsertStream, primaryKey: [id]}
"""


def _row(id: str, email: str) -> bytes:
    return f'{{"event_time": "2024-01-01T00:00:00Z", "id": "{id}", "email": "{email}"}}\n'.encode()


def test_an_upsert_appends_only_what_differs(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    machine(tmp_path / "machine", monkeypatch)
    shop = Shop.fresh(tmp_path / "shop", personal=False, derived={})
    for file in (shop.root / "datasets").iterdir():
        file.unlink()
    (shop.root / "datasets" / "people.yaml").write_text(_PEOPLE)
    file = shop.root / "odfbuild.yaml"
    entry = "{match: [people], columns: [email], subject: id}"
    file.write_text(f"{file.read_text()}  personal: [{entry}]\n")
    odfbuild = Program(shop.root, monkeypatch, capsys)
    odfbuild.apply()
    odfbuild.ok("ingest", "people", "-", stdin=_row("a", "zephyrine") + _row("b", "quixotic"))
    odfbuild.ok("ingest", "people", "-", stdin=_row("a", "zephyrine") + _row("b", "quixotic2"))
    found = shop.project["people"].history.to_arrow()
    assert found["op"].to_pylist() == [0, 0, 2, 3]
    assert found["email"].to_pylist() == ["zephyrine", "quixotic", "quixotic", "quixotic2"]
    assert files_with(shop.root, "zephyrine", "quixotic") == []
    said = odfbuild("ingest", "people", "-", stdin=b'{"id": "c", "email": ["zephyrine"]}\n')
    assert said.code == 1 and "zephyrine" not in said.err
    assert files_with(shop.root, "zephyrine", "quixotic") == []
