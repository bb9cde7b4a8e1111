"""Who has no right or no keys sees no values, in no place."""

import json
import logging
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from odfbuild import Project
from odfbuild.apply.personal import check_rights
from odfbuild.engine.contract import Engine
from odfbuild.engine.settings import EngineSettings
from odfbuild.errors import OdfbuildError
from tests.apply.in_process import Program, share
from tests.personal.shop import DERIVED, PERSONAL, SECRETS, Shop, files_with, machine

pytestmark = pytest.mark.spark

_TABLES = """\
  tables:
    - {match: [customers], format: parquet, location: lake}
    - match: [customers]
      format: kartothek
      name: clients
      location: kartothek
      indices: [country]
  show:
    - match: ["*"]
  checks:
    - match: [customers]
      unique: [[email]]
"""


@pytest.fixture
def shop(
    tmp_path: Path, built: Path, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> Shop:
    """The shop with personal columns after two days, on a machine that shows values to people."""
    share(spark_engine, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    shutil.copytree(built, tmp_path, dirs_exist_ok=True, symlinks=True)
    machine(tmp_path / "machine", monkeypatch)
    return Shop(tmp_path / "shop")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, spark_engine: Engine) -> Iterator[Path]:
    """A folder with that shop and the keys of its customers."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as monkeypatch:
        share(spark_engine, monkeypatch)
        machine(folder / "machine", monkeypatch)
        _build(folder)
    yield folder


@pytest.fixture
def plain(tmp_path: Path, plainly_built: Path) -> Shop:
    """The same without personal columns."""
    return Shop(shutil.copytree(plainly_built, tmp_path / "plain", symlinks=True))


@pytest.fixture(scope="module")
def plainly_built(tmp_path_factory: pytest.TempPathFactory, spark_engine: Engine) -> Path:
    """The folder of that shop."""
    derived = {"contacts": DERIVED["contacts"]}
    made = Shop.fresh(tmp_path_factory.mktemp("plain") / "s", personal=False, derived=derived)
    with pytest.MonkeyPatch.context() as monkeypatch:
        share(spark_engine, monkeypatch)
        for day in (1, 2):
            made.arrive(day)
            made.apply()
    return made.root


def _build(folder: Path) -> None:
    derived = {name: DERIVED[name] for name in ("mail", "domains", "contacts")}
    made = Shop.fresh(folder / "shop", personal=True, derived=derived)
    file = made.root / "odfbuild.yaml"
    text = file.read_text().replace(PERSONAL, PERSONAL.replace("shouted, near, latest, both", ""))
    text = text.replace("mail, ]", "mail]").replace("counted", "customers") + _TABLES
    file.write_text(text.replace("match: [domains, customers]", "match: [domains]"))
    file.write_text(file.read_text().replace("[domain, names, customers]", "[domain, names]"))
    for day in (1, 2):
        made.arrive(day)
        made.apply()


def emails(table: pa.Table) -> list[str]:
    return [each for each in table["email"].to_pylist() if each is not None]


def seen(shop: Shop) -> dict[str, list[str]]:
    """What every way of reading shows of a column."""
    project, query = shop.project, "SELECT email FROM customers"
    records = project.records("customers")
    assert records is not None
    condition = pc.field("country") == "c1"
    return {
        "arrow": emails(project["customers"].to_arrow()),
        "history": emails(project["customers"].history.to_arrow()),
        "filter": emails(project["customers"].filter(condition).to_arrow()),
        "tail": emails(project["customers"].tail(5)),
        "polars": emails(project["customers"].to_polars().to_arrow()),
        "duckdb": emails(project["customers"].to_duckdb().to_arrow_table()),
        "records": emails(records),
        "sql": emails(project.sql(query, engine="duckdb")),
        "spark": emails(project.sql(query, engine="spark")),
        "derived": emails(project["contacts"].to_arrow()),
    }


def test_rights_decide_what_every_reader_sees(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = seen(shop)
    assert all(values and all("zephyrine" in v for v in values) for values in plain.values())
    machine(tmp_path / "machine", monkeypatch, more="show: false")
    hidden = seen(shop)
    for way, values in hidden.items():
        assert len(values) == len(plain[way]), way
        assert all(re.fullmatch(r"p-[0-9a-f]{16}", each) for each in values), (way, values[:2])
    assert sorted(hidden["sql"]) == sorted(hidden["spark"]) == sorted(hidden["arrow"])
    machine(tmp_path / "machine", monkeypatch, more="hide: empty")
    assert seen(shop) == {way: [] for way in plain}
    monkeypatch.setenv("ODFBUILD_CONFIG", str(tmp_path / "none.yaml"))
    (tmp_path / "none.yaml").write_text("kind: Machine\nversion: 1\ncontent: {}\n")
    assert seen(shop) == hidden


def test_commands_say_that_values_are_hidden(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odfbuild = Program(shop.root, monkeypatch, capsys)
    assert "Personal columns" not in odfbuild.ok("tail", "customers").err
    machine(tmp_path / "machine", monkeypatch, more="show: false")
    said = odfbuild.ok("tail", "customers")
    assert "Personal columns of customers are shown as pseudonyms" in said.err
    assert "zephyrine" not in said.out
    query = "SELECT country, count(*) AS n FROM customers GROUP BY country"
    asked = odfbuild.ok("sql", "--engine", "duckdb", query)
    assert "this machine may not show them" in asked.err


def test_a_filter_is_about_what_is_shown(shop: Shop) -> None:
    data = shop.project["customers"]
    (first, *_) = emails(data.to_arrow())
    found = data.filter(pc.field("email") == first)
    assert found.count() == found.to_arrow().num_rows > 0
    assert {*emails(found.to_arrow())} == {first}
    assert {*emails(found.tail(3))} == {first}


def test_tables_sites_and_comments_have_values_only_if_they_may_be_published(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odfbuild = Program(shop.root, monkeypatch, capsys)
    odfbuild.ok("docs", "build", "--out", str(tmp_path / "site"))
    assert files_with(shop.root, *SECRETS) == []
    assert files_with(tmp_path / "site", *SECRETS) == []
    table = shop.root / "lake" / "customers"
    assert any("p-" in str(v) for f in table.rglob("*.parquet") for v in _values(f, "email"))
    machine(tmp_path / "machine", monkeypatch, more="publish: true")
    shop.arrive(3)
    shop.apply()
    found = [v for f in table.rglob("*.parquet") for v in _values(f, "email")]
    assert any("zephyrine" in str(v) for v in found)
    assert odfbuild.ok("verify").code == 0
    machine(tmp_path / "machine", monkeypatch)
    shop.arrive(4)
    shop.apply()
    current = shop.project["customers"].count()
    assert (
        current
        == shop.project.sql("SELECT count(*) AS n FROM customers", engine="duckdb")[
            "n"
        ].to_pylist()[0]
    )
    assert odfbuild.ok("verify").code == 0


def _values(file: Path, column: str) -> list[object]:
    import pyarrow.parquet as pq

    return list(pq.read_table(file, columns=[column])[column].to_pylist())


def test_without_keys_nothing_is_computed_and_everything_is_intact(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odfbuild = Program(shop.root, monkeypatch, capsys)
    said = odfbuild.ok("verify")
    assert "not recomputed" not in said.out
    (tmp_path / "none.yaml").write_text("kind: Machine\nversion: 1\ncontent: {}\n")
    monkeypatch.setenv("ODFBUILD_CONFIG", str(tmp_path / "none.yaml"))
    said = odfbuild.ok("verify")
    assert "mail was not recomputed" in said.out and "keys of subjects" in said.out
    shop.arrive(3)
    outcome = {each.name: each for each in shop.project.apply().datasets}
    assert outcome["customers"].error is not None and outcome["customers"].error.code == "E1604"
    assert outcome["customers"].blocks == 0
    plan = odfbuild("plan")
    assert plan.code in (0, 2), plan.err


def test_provenance_and_differences_are_those_of_the_records(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = shop.project["mail"].provenance(0)
    assert [each.dataset for each in tree.inputs] == ["customers"]
    shop.derive("mail", DERIVED["mail"].replace("%1%", "%2%"))
    odfbuild = Program(shop.root, monkeypatch, capsys)
    told = odfbuild("diff", "--data")
    assert told.code in (0, 2) and "zephyrine" in told.out, told.err


def test_without_the_right_to_see_values_no_difference_of_a_changed_query_is_shown(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path / "machine", monkeypatch, more="show: false")
    shop.derive("mail", DERIVED["mail"].replace("%1%", "%2%"))
    told = Program(shop.root, monkeypatch, capsys)("diff", "--data")
    assert told.code == 1
    assert "error[E1613]" in told.err
    assert "zephyrine" not in told.out + told.err


def test_personal_columns_are_not_computed_on_another_machine(shop: Shop) -> None:
    elsewhere = EngineSettings(master="spark://spark.example.org:7077")
    workspace = shop.project.workspace()
    with pytest.raises(OdfbuildError) as caught:
        check_rights(workspace, "mail", ["customers"], elsewhere)
    assert caught.value.code == "E1607"
    check_rights(workspace, "mail", ["customers"], EngineSettings())


def test_errors_and_logs_tell_no_values(
    shop: Shop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    query = "SELECT event_time, customer_id, CAST(email AS BIGINT) AS n FROM customers"
    shop.derive("number", query)
    file = shop.root / "odfbuild.yaml"
    entry = "    - {match: [number], disclose: [n]}\n  tables:"
    file.write_text(file.read_text().replace("  tables:", entry))
    # The address stands where a number is wanted.
    rows = "event_time,customer_id,ip,page\n2024-03-05 00:00:00,10.77.0.1,1,p1\n"
    (shop.root / "data" / "events-5.csv").write_text(rows)
    odfbuild = Program(shop.root, monkeypatch, capsys)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "E0517" in said.err and "E0421" in said.err, said.err
    for text in (said.out, said.err, caplog.text):
        assert not any(each in text for each in SECRETS), text
    assert files_with(shop.root, *SECRETS) == []
    assert files_with(tmp_path / "home", *SECRETS) == []
    keys = [each.read_bytes() for each in (tmp_path / "machine").glob("wrapping-key")]
    assert keys and files_with(shop.root, keys[0].decode().strip()) == []


_QUERIES = [
    "SELECT {column}, count(*) AS n FROM {dataset} GROUP BY {column}",
    "SELECT customer_id, {column} FROM {dataset} WHERE {column} LIKE '%{digit}%'",
    "SELECT max({column}) AS m, min({column}) AS l, count(DISTINCT {column}) AS n FROM {dataset}",
    "SELECT a.customer_id, a.{column}, b.country FROM {dataset} a JOIN customers b"
    " ON a.customer_id = b.customer_id WHERE b.name IS NOT NULL",
    "SELECT upper({column}) AS u, length({column}) AS l FROM {dataset} WHERE customer_id > {digit}",
    "SELECT customer_id, {column}, row_number() OVER (PARTITION BY customer_id ORDER BY {column},"
    " event_time) AS r FROM {dataset}",
    "SELECT {column} FROM {dataset} UNION ALL SELECT email FROM customers",
]
_COLUMNS = [("customers", "email"), ("customers", "name"), ("orders", "address"), ("events", "ip")]


def _random_query(dice: random.Random) -> str:
    dataset, column = dice.choice(_COLUMNS)
    pattern = dice.choice(_QUERIES)
    return pattern.format(dataset=dataset, column=column, digit=dice.randrange(9))


@pytest.mark.parametrize(
    "number", [30, pytest.param(200, marks=pytest.mark.slow(reason="two hundred queries"))]
)
def test_random_queries_give_the_same_with_keys_and_without_personal_columns(
    shop: Shop, plain: Shop, number: int
) -> None:
    dice = random.Random(7)
    for at in range(number):
        query = _random_query(dice)
        engine = "spark" if at % 6 == 0 else "duckdb"
        found = [_sorted(each.project.sql(query, engine=engine)) for each in (shop, plain)]  # type: ignore[arg-type]
        assert found[0] == found[1], query


def _sorted(table: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in table.to_pylist())


def test_after_an_erasure_the_records_of_others_are_the_same_and_none_is_left_over(
    shop: Shop, plain: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odfbuild = Program(shop.root, monkeypatch, capsys)
    odfbuild.ok("erase", "1", "2", "3", "-y")
    for each in (shop, plain):
        each.arrive(3)
        each.apply()
    erased = pc.field("customer_id") <= 3
    found = [each.project["contacts"] for each in (shop, plain)]
    others = [_sorted(each.filter(~erased).to_arrow()) for each in found]
    assert others[0] == others[1]
    gone = [each.filter(erased) for each in found]
    kept = [_sorted(each.select("order_id", "customer_id").to_arrow()) for each in gone]
    assert kept[0] == kept[1]
    assert emails(gone[0].to_arrow()) == []
    assert emails(gone[1].to_arrow())
    assert odfbuild("verify").code == 0


def test_a_derivative_with_plain_records_is_built_anew(shop: Shop, plain: Shop) -> None:
    file = plain.root / "odfbuild.yaml"
    entries = "[{match: [customers, contacts], columns: [name, email], subject: customer_id}]"
    file.write_text(f"{file.read_text()}  personal: {entries}\n")
    plain.arrive(3)
    outcome = {each.name: each for each in plain.project.apply().datasets}
    assert "plain text" in str(outcome["customers"].warnings)
    error = outcome["contacts"].error
    assert error is not None and error.code == "E1612"


def test_a_proof_of_personal_columns_is_refused(shop: Shop) -> None:
    from odfbuild.inspect.ask import understand
    from odfbuild.inspect.proof import prove

    project = Project(shop.root)
    workspace = project.workspace()
    question = understand("SELECT email FROM customers", workspace.aliases())
    with pytest.raises(OdfbuildError) as caught:
        prove(workspace, question, project._start_engine)
    assert caught.value.code == "E1609"
