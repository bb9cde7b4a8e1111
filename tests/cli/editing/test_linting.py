"""`odfbuild lint`: what is valid and still unwise, with codes and places, never by guessing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from odfbuild.api.authoring.doubtful import doubtful_parts
from odfbuild.project.definitions import definitions_in
from odfbuild.project.settings.lint import RULES
from odfbuild.project.source import Source
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.project.write_project import derived_yaml, root_yaml
from tests.report.golden import assert_golden

EXAMPLE = Path(__file__).parents[3] / "example_project"

ORDERS = (
    root_yaml("orders", "ordered_at TIMESTAMP, day STRING, amount DECIMAL(9;2)", "x/*").replace(
        ";", ","
    )
    + """    - kind: SetVocab
      eventTimeColumn: order_at
    - kind: SetInfo
      description: Orders
"""
)
FLAWED = {
    "root": """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Url
        url: http://example.org/x.csv
        headers:
          - name: Authorization
            value: Bearer 1234
          - name: X-Api-Key
            value: ${{ env.KEY }}
      read:
        kind: Csv
        header: true
        nullValue: NO
        schema:
          - event_time TIMESTAMP
          - id BIGINT
          - amount DOUBLE
      merge:
        kind: Snapshot
        primaryKey:
          - event_time
          - id
        compareColumns: [amount]
""",
    "shop": """\
kind: DatasetSnapshot
version: 1
content:
  name: shop
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Url
        url: postgresql://reader:${{ env.KEY }}@db.example.org/shop?cursor=updated_at#orders
      read:
        kind: Parquet
        schema: [id BIGINT, updated_at TIMESTAMP]
      merge:
        kind: UpsertStream
        primaryKey: [id]
    - kind: SetInfo
      description: Orders of the shop
""",
    "container": """\
kind: DatasetSnapshot
version: 1
content:
  name: job
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Container
        image: example.org/fetch:latest
        env:
          - name: DB_PASSWORD
            value: hunter2
          - name: TOKEN
      read:
        kind: NdJson
      merge:
        kind: Append
    - kind: SetInfo
      description: What a program prints
""",
    "sums": derived_yaml(
        "sums",
        "root",
        "SELECT max(event_time) AS event_time, id, COUNT(*) AS n FROM src s GROUP BY id",
    ),
    "orders": ORDERS,
    "doubtful": derived_yaml(
        "doubtful",
        "orders",
        "SELECT a.ordered_at AS event_time, to_date(a.day, 'dd.mm.yyyy') AS d, a.amount * 2\n"
        "FROM src AS a, src AS b",
    ),
    "local": derived_yaml(
        "local",
        "root",
        "SELECT to_utc_timestamp(event_time, 'Europe/Paris') AS event_time, id FROM src",
    ),
    "all": derived_yaml(
        "all", "root", "SELECT src.* EXCEPT (offset, op, system_time), 2 * 3 AS six FROM src"
    ),
}

CLEAN_QUERY = "SELECT event_time, id, 2 * value AS value FROM src"


def copies(tiny: Tiny) -> None:
    """Three derivatives whose queries differ in literals only, and one that differs in a column."""
    where = "WHERE value > {} AND id <> {} AND 'x' = '{}' OR value < 0 AND id IS NOT NULL"
    base = f"SELECT event_time, id, value FROM src {where}"
    for name, values in {"one": (1, 2, "x"), "two": (20, 3, "y y"), "three": (3.5, 4, "")}.items():
        text = derived_yaml(name, "source", base.format(*values))
        (tiny.root / "datasets" / f"{name}.yaml").write_text(text)
    other = base.format(1, 2, "x").replace("id, value", "value, id")
    (tiny.root / "datasets" / "other.yaml").write_text(derived_yaml("other", "source", other))


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A project with every flaw there is."""
    tiny = Tiny.fresh(tmp_path / "p")
    folder = tiny.root / "datasets"
    (folder / "root.yaml").rename(folder / "source.yaml")
    text = (folder / "source.yaml").read_text().replace("name: root", "name: source")
    (folder / "source.yaml").write_text(text)
    (folder / "derived.yaml").unlink()
    for name, flawed in FLAWED.items():
        (folder / f"{name}.yaml").write_text(flawed)
    copies(tiny)
    (folder / "per.yaml.j2").write_text(
        "matrix:\n  n: [2, 3]\n---\n"
        + derived_yaml("per.{{ n }}", "source", "SELECT event_time, id + {{ n }} AS id FROM src")
    )
    unused = derived_yaml("unused", "source", CLEAN_QUERY).replace(
        "alias: src\n", "alias: src\n        - datasetRef: root\n          alias: more\n", 1
    )
    (folder / "unused.yaml").write_text(unused)
    (folder / "lonely.sql").write_text(CLEAN_QUERY)
    return tiny


def test_every_rule_finds_what_it_is_for(odfbuild: Program, tiny: Tiny) -> None:
    said = odfbuild("lint")
    assert said.code == 0
    assert_golden("lint.txt", said.out.rstrip("\n"))
    found = odfbuild.ok("lint", "--json").data["findings"]
    assert {each["rule"] for each in found} == set(RULES)
    assert odfbuild("lint", "--strict").code == 1
    # The instances of a template have one flaw, not two.
    assert [e["line"] for e in found if e["file"].endswith("per.yaml.j2")] == [7]


def test_levels_are_those_of_the_project(odfbuild: Program, tiny: Tiny) -> None:
    config = tiny.root / "odfbuild.yaml"
    before = config.read_text()
    levels = dict.fromkeys(RULES, "off") | {"select-star": "error"}
    config.write_text(before + "  lint:\n" + "".join(f"    {k}: {v}\n" for k, v in levels.items()))
    said = odfbuild("lint")
    assert said.code == 1
    assert said.out.startswith("error[L002 select-star]: `*` takes all columns of an input")
    assert said.out.endswith("\n1 error, 0 warnings.\n")
    config.write_text(before + "  lint:\n    select-stars: off\n")
    assert "did you mean 'select-star'?" in odfbuild("lint").err
    config.write_text(before + "  lint:\n    select-star: loud\n")
    assert "error[E0105]" in odfbuild("lint").err


def test_only_what_is_selected_is_looked_at(odfbuild: Program) -> None:
    found = odfbuild.ok("lint", "sums", "--json").data["findings"]
    assert {each["file"] for each in found} == {"datasets/sums.yaml"}


def test_what_is_safe_is_mended(odfbuild: Program, tiny: Tiny) -> None:
    root = tiny.root / "datasets" / "root.yaml"
    before = root.read_text()
    said = odfbuild("lint", "--fix", "--json")
    assert "Fixed datasets/root.yaml" in said.err
    assert root.read_text() == before.replace("nullValue: NO", 'nullValue: "NO"')
    assert "ambiguous-text" not in said.out
    assert not odfbuild("lint", "--fix").err
    assert yaml.safe_load(root.read_text())["content"]["metadata"][0]["read"]["nullValue"] == "NO"


def test_a_formatted_file_keeps_the_quotes_that_were_asked_for(
    odfbuild: Program, tiny: Tiny
) -> None:
    odfbuild("lint", "--fix")
    odfbuild.ok("fmt")
    assert 'nullValue: "NO"' in (tiny.root / "datasets" / "root.yaml").read_text()


def test_nothing_is_wrong_with_the_example(odfbuild: Program, tmp_path: Path) -> None:
    example = tmp_path / "example"
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns("chains", ".odfbuild*"))
    said = odfbuild.ok("-C", str(example), "lint", "--strict")
    assert said.out == "No issues found.\n"


@pytest.mark.parametrize(
    "query",
    [
        CLEAN_QUERY,
        "SELECT event_time, SUM(id) AS n, COUNT(*) AS c FROM src GROUP BY event_time",
        "SELECT event_time, SUM(CAST(value AS DECIMAL(9))) AS n FROM src GROUP BY event_time",
        "WITH x AS (SELECT event_time, id FROM src) SELECT event_time, 1.*id AS i FROM x",
        "SELECT `event_time`, `src`.`id` FROM `src`",
        "SELECT event_time, abs(id) AS x FROM src -- *",
    ],
)
def test_what_is_in_order_is_not_reported(odfbuild: Program, tiny: Tiny, query: str) -> None:
    (tiny.root / "datasets" / "fine.yaml").write_text(derived_yaml("fine", "source", query))
    found = odfbuild.ok("lint", "fine", "--json").data["findings"]
    assert [each["rule"] for each in found if each["rule"] != "no-description"] == []


def test_what_the_engine_would_refuse_is_an_error_that_no_level_silences(
    odfbuild: Program, tiny: Tiny
) -> None:
    config = tiny.root / "odfbuild.yaml"
    levels = "".join(f"    {rule}: off\n" for rule in RULES)
    config.write_text(f"{config.read_text()}  lint:\n{levels}")
    file = tiny.root / "datasets" / "sums.yaml"
    file.write_text(derived_yaml("sums", "root", "SELECT id, AVG(amount) AS a FROM src GROUP BY 1"))
    (tiny.root / "datasets" / "root.yaml").write_text(FLAWED["root"].replace("- id\n", "- idd\n"))
    said = odfbuild("lint")
    assert said.code == 1
    assert "error[E0506]: AVG() of floating point numbers depends on the order of rows" in said.out
    assert "error[E0515]: the result has no column 'event_time'" in said.out
    assert "error[E0430]: `merge.primaryKey` names the column 'idd'" in said.out
    assert said.out.endswith("\n3 errors, 0 warnings.\n")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, a.id FROM src AS a, src AS b WHERE a.id = b.id",
        "SELECT event_time, a.id FROM src AS a CROSS JOIN src AS b",
        "SELECT event_time, explode(tags) FROM src",
        "SELECT event_time, to_timestamp(t, 'yyyy-MM-dd HH:mm:ss') AS u, place.x FROM src",
        "SELECT event_time, to_timestamp(t, 'h:mm a') AS u FROM src",
        "SELECT event_time, count(*) OVER () AS n FROM src",
    ],
)
def test_what_is_meant_as_it_is_written_is_not_doubted(query: str) -> None:
    definition = definitions_in(Source("x.yaml", derived_yaml("x", "y", query)))[0]
    assert [each.rule for each in doubtful_parts(definition)] == []


@pytest.mark.parametrize(
    ("query", "rules"),
    [
        ("SELECT event_time, to_timestamp(t, 'HH:MM') AS u FROM src", ["date-pattern"]),
        ("SELECT event_time, count(*) FROM src GROUP BY 1", ["unnamed-column"]),
        ("SELECT event_time, a + 1 FROM src UNION ALL SELECT t, 1 FROM b", ["unnamed-column"]),
        ("SELECT event_time FROM (SELECT * FROM src, other)", ["comma-join"]),
    ],
)
def test_what_is_probably_meant_otherwise_is_doubted(query: str, rules: list[str]) -> None:
    definition = definitions_in(Source("x.yaml", derived_yaml("x", "y", query)))[0]
    assert [each.rule for each in doubtful_parts(definition)] == rules
