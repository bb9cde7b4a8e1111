"""What the words of a plain query tell without a parser is what its tree tells."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import RECORD_BY_RECORD
from odfbuild.sql.parsed import parsed
from odfbuild.sql.query_text import Part, numbered, parsed_parts, parts_of, plain_parts
from tests.engine.inputs import sql

WRITTEN = (Path(__file__).parents[1] / "engine" / "accepted.sql").read_text().splitlines()
WORDS = """SELECT SELECT x, 'it', y + 1 * FROM FROM a `b-c` d.e AS t WHERE WHERE x > 1 AND UNION ALL
    SELECT ( ) , ; UNION ALL for from by limit order sort tablesample natural left select"""


def agrees(query: str) -> None:
    plain = plain_parts(query)
    if plain is not None and parsed(query) is not None:
        assert parsed_parts(query) == plain
        assert expected_mode(sql(query, "SELECT DISTINCT x FROM step0")).reason.startswith("DIST")


@pytest.mark.parametrize("query", [each for each in WRITTEN if not each.startswith("--")])
def test_queries_that_people_write_are_told_alike(query: str) -> None:
    agrees(query)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join))
def test_words_in_any_order_are_told_alike(query: str) -> None:
    agrees(f"SELECT x FROM a {query}")
    agrees(query)


def test_a_plain_query_reads_a_relation_with_each_select() -> None:
    query = "SELECT x FROM `a-b` WHERE x > 'union'\nUNION ALL\nselect x from us.bts.flights AS f;"
    assert plain_parts(query) == (Part("a-b", drops=True), Part("us.bts.flights", drops=False))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM a, b",
        "SELECT x FROM a JOIN b ON a.x = b.x",
        "SELECT x FROM (SELECT x FROM a)",
        "SELECT max(x) FROM a",
        "SELECT x FROM a WHERE x IN (SELECT y FROM b)",
        "SELECT x FROM a |> LIMIT 3",
        "SELECT x FROM a -- WHERE y",
        "SELECT x FROM a TABLESAMPLE (3 ROWS)",
        "SELECT x FROM a SORT BY x",
        "SELECT x FROM",
    ],
)
def test_words_that_may_say_more_are_left_to_the_parser(query: str) -> None:
    assert plain_parts(query) is None


def test_queries_that_differ_in_names_in_backquotes_are_parsed_once() -> None:
    queries = [f"SELECT max(`n`) FROM `layer-{n}` WHERE `the city` = '{{}}'" for n in range(9)]
    assert {numbered(each)[0] for each in queries} == {
        "SELECT max(`n`) FROM `#0` WHERE `#1` = '{}'"
    }
    assert parts_of(queries[3]) == (Part("layer-3", drops=True),)


def test_no_parser_is_imported_for_plain_queries() -> None:
    code = """
import sys
from odfbuild.sql.forecast import expected_mode
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.sql.bounds import never_adds_records
query = "SELECT x FROM `a-b` WHERE x > 1 UNION ALL SELECT y FROM c"
transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))
assert never_adds_records(transform, ["a-b", "c"])
print(expected_mode(transform).mode.value, "sqlglot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [RECORD_BY_RECORD.mode.value, "False"]
