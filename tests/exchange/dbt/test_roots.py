"""Roots for seeds and sources: types, keys, and what dbt fills in."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.exchange.dbt.model import GenericTest, Node, Place
from odfbuild.exchange.dbt.roots import as_dbt_reads, ddl_type, key_of, seed

PLACE = Place("seeds/a.csv")


def node(**settings) -> Node:
    return Node(id="seed.x.a", kind="seed", name="a", table="a", place=PLACE, **settings)


@pytest.mark.parametrize(
    ("text", "dialect", "ddl"),
    [
        ("varchar(10)", "postgres", "STRING"),
        ("number(10, 2)", "snowflake", "DECIMAL(10, 2)"),
        ("numeric", "bigquery", "DECIMAL(38, 10)"),
        ("int64", "bigquery", "BIGINT"),
        ("timestamptz", "postgres", "TIMESTAMP"),
        ("hugeint", "duckdb", None),
        ("no such type", "duckdb", None),
    ],
)
def test_types_of_databases_are_types_of_columns(text: str, dialect: str, ddl: str | None) -> None:
    assert ddl_type(text, dialect) == ddl


@pytest.mark.parametrize(
    ("tests", "config", "key"),
    [
        ([("unique", "id", {})], {}, ("id",)),
        (
            [
                (
                    "dbt_utils.unique_combination_of_columns",
                    None,
                    {"combination_of_columns": ["a", "b"]},
                )
            ],
            {},
            ("a", "b"),
        ),
        ([], {"unique_key": "id"}, ("id",)),
        ([("not_null", "id", {})], {}, ()),
    ],
)
def test_the_key_is_what_tests_call_unique(tests, config, key) -> None:
    found = [GenericTest(name=n, column=c, arguments=a, place=PLACE) for n, c, a in tests]
    assert key_of(node(tests=tuple(found), config=config)) == key


def test_short_rows_and_hours_of_one_digit_are_written_out() -> None:
    text, changes = as_dbt_reads(b"at,a,b\n2026-01-02 4:30:21,x\n2026-01-02 14:30:21,x,y\n", ",")
    assert text == "at,a,b\n2026-01-02 04:30:21,x,\n2026-01-02 14:30:21,x,y\n"
    assert len(changes) == 2
    assert as_dbt_reads(b"a,b\n1,2\n", ",") == (None, [])


@pytest.mark.parametrize(
    ("last", "merge"),
    [
        ("x;z", {"kind": "Snapshot", "primaryKey": ["word", "note"]}),
        ("x;y", {"kind": "Append"}),
    ],
)
def test_a_seed_without_a_key_has_all_columns_as_key_unless_records_repeat(
    tmp_path: Path, last: str, merge
) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "a.csv").write_text(f"word;note\nx;y\n{last}\n")
    root = seed(node(config={"delimiter": ";"}), tmp_path, "duckdb", ())
    (event,) = root.events
    assert event["merge"] == merge
    assert event["read"]["separator"] == ";"
