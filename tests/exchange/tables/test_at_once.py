"""Two processes that publish at once: nothing is doubled, and neither takes from the other."""

from __future__ import annotations

from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from odfbuild.exchange.tables.contract import TableState
from odfbuild.exchange.tables.remembered import known_of, remember
from odfbuild.project.config import load_config
from odfbuild.project.tables import Table
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.exchange.tables.open_tables import parts, pin, table, values
from tests.exchange.tables.processes import SECONDS, ended, start
from tests.exchange.tables.tables import FORMATS, Format
from tests.forks import FORKS

MANY = 50


def declared(name: str) -> Table:
    return Table(name=name, dataset="root", format="parquet", location="/lake")


def remember_many(root: Path, mine: str, together: Barrier) -> None:
    config = load_config(root)
    together.wait(SECONDS)
    for number in range(MANY):
        state = TableState(token="", pin=pin(number), partitions=number)
        remember(config, declared(f"{mine}-{number}"), state)


def test_what_two_processes_remember_at_once_is_all_there(tmp_path: Path) -> None:
    root = Tiny.fresh(tmp_path / "p").root
    together = FORKS.Barrier(2)
    made = [FORKS.Process(target=remember_many, args=(root, m, together)) for m in "ab"]
    for each in made:
        each.start()
    assert [ended(each) for each in made] == [0, 0]
    config = load_config(root)
    for mine in "ab":
        known = [known_of(config, declared(f"{mine}-{number}")) for number in range(MANY)]
        assert [each and each.pin for each in known] == [pin(number) for number in range(MANY)]


def first_tables(folder: Path, mine: str, together: Barrier) -> None:
    for number in range(5):
        together.wait(SECONDS)
        opened = table("iceberg", folder / str(number), name=mine)
        together.wait(SECONDS)
        opened.commit(None, pin(1), None, parts({"a": [1]}))


def test_the_first_two_tables_of_a_catalogue_can_be_made_at_once(tmp_path: Path) -> None:
    together = FORKS.Barrier(2)
    made = [FORKS.Process(target=first_tables, args=(tmp_path, m, together)) for m in "ab"]
    for each in made:
        each.start()
    assert [ended(each) for each in made] == [0, 0]
    for number in range(5):
        for mine in "ab":
            opened = table("iceberg", tmp_path / str(number), name=mine)
            assert values(opened) == {"a": [1]}


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_of_two_applies_that_publish_one_table_at_once_one_is_first_and_nothing_is_doubled(
    tmp_path: Path,
    format: Format,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = Tiny.fresh(tmp_path / "p")
    odfbuild = Program(tiny.root, monkeypatch, capsys)
    config = tiny.root / "odfbuild.yaml"
    without = config.read_text()
    entry = f"{{match: [root], {format.settings}, location: lake, partitionBy: [id]}}"
    for number, expected in ((1, [1, 2, 3]), (2, [1, 2, 3, 4])):
        config.write_text(without)
        tiny.arrive(number)
        assert ended(start(tiny.root)) == 0
        config.write_text(f"{without}  tables: [{entry}]\n")
        assert odfbuild("plan", "--detailed-exitcode").code == 2
        meet = FORKS.Barrier(2)
        codes = [ended(each) for each in [start(tiny.root, meet=meet) for _ in range(2)]]
        assert sorted(codes) == [0, 5], [each.read_text() for each in tiny.root.glob("*.log")]
        for reader in format.readers.values():
            assert sorted(reader(tiny.root / "lake" / "root")["id"].to_pylist()) == expected
        assert odfbuild("plan", "--detailed-exitcode").code == 0
        assert "Table" not in odfbuild.ok("plan").out
        assert odfbuild("verify", "--integrity").code == 0
