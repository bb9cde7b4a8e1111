"""Row-wise transformations: what comes out, in which order, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine, InputSlices
from odfbuild.engine.spark.queries import checked
from odfbuild.errors import Errors, InDefinition, OdfbuildError, QueryError
from odfbuild.odf.vocabulary import Vocabulary
from tests.engine.inputs import SCHEMA, columns_of, read, rows, slices, sql, task

pytestmark = pytest.mark.spark
VOCAB = Vocabulary()
CITIES = InputSlices(alias="cities", schema=SCHEMA, vocab=VOCAB)


def test_records_keep_the_order_of_their_offsets(spark_engine: Engine, tmp_path: Path) -> None:
    given = slices(tmp_path, rows(0, 500), rows(500, 500), rows(1000, 500))
    query = sql("SELECT event_time, population FROM cities WHERE population % 3 = 0")
    result = spark_engine.run(task(tmp_path, query, given))
    found = read(result.parts)["population"].to_pylist()
    assert found == [n for n in range(1500) if n % 3 == 0]


def test_only_records_of_the_interval_are_read(spark_engine: Engine, tmp_path: Path) -> None:
    given = replace(slices(tmp_path, rows(0, 10), rows(10, 10)), first=5, last=12)
    query = sql("SELECT event_time, population FROM cities")
    result = spark_engine.run(task(tmp_path, query, given))
    assert read(result.parts)["population"].to_pylist() == list(range(5, 13))


def test_several_steps_and_inputs_are_joined_by_union(spark_engine: Engine, tmp_path: Path) -> None:
    one = slices(tmp_path, rows(0, 3), alias="one")
    two = slices(tmp_path, rows(0, 2), alias="two")
    query = sql(
        "SELECT event_time, population FROM one",
        "SELECT event_time, population FROM step0 UNION ALL SELECT event_time, population FROM two",
    )
    result = spark_engine.run(task(tmp_path, query, one, two))
    assert read(result.parts)["population"].to_pylist() == [0, 1, 2, 0, 1]


def test_a_query_that_was_found_right_is_not_checked_again_when_its_chain_pins_a_version(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = sql("SELECT event_time, population + 7 AS pinned FROM cities")
    columns_of(spark_engine, "d", query, [CITIES])
    monkeypatch.setattr(checked, "check_steps", None)
    step = task(tmp_path, replace(query, version="4.3.0"), slices(tmp_path, rows(0, 3)))
    assert read(spark_engine.run(step).parts)["pinned"].to_pylist() == [7, 8, 9]


def test_the_engine_says_how_far_it_is_with_a_dataset(spark_engine: Engine, tmp_path: Path) -> None:
    # A name of its own: the engine is that of other files, too, and knows theirs.
    assert spark_engine.progress("counted.far") is None
    query = sql(
        "SELECT max(event_time) AS event_time, city, COUNT(*) AS n FROM cities GROUP BY city"
    )
    # More than are handed over: those Spark does not read.
    given = slices(tmp_path, rows(0, 15_000), rows(15_000, 15_000))
    spark_engine.run(replace(task(tmp_path, query, given), dataset="counted.far"))
    found = spark_engine.progress("counted.far")
    assert found is not None
    assert found.tasks_done == found.tasks >= found.stages_done > 0
    assert found.stages >= found.stages_done
    assert found.records_read >= 30_000


def test_an_input_without_new_records_is_an_empty_view(
    spark_engine: Engine, tmp_path: Path
) -> None:
    query = sql("SELECT event_time, upper(city) AS city FROM cities")
    result = spark_engine.run(task(tmp_path, query, slices(tmp_path)))
    assert read(result.parts).num_rows == 0 if result.parts else True
    assert result.schema.names == ["event_time", "city"]


def test_slices_with_unsigned_offsets_are_read_like_others(
    spark_engine: Engine, tmp_path: Path
) -> None:
    peer = rows(2, 2)
    peer = peer.set_column(0, "offset", peer["offset"].cast(pa.uint64()))
    peer = peer.set_column(1, "op", peer["op"].cast(pa.uint8()))
    given = slices(tmp_path, rows(0, 2), peer)
    query = sql("SELECT event_time, population FROM cities")
    result = spark_engine.run(task(tmp_path, query, given))
    assert read(result.parts)["population"].to_pylist() == [0, 1, 2, 3]


def test_a_column_that_older_slices_lack_is_null_there(
    spark_engine: Engine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 2).drop_columns(["city"]), rows(2, 2))
    query = sql("SELECT event_time, city FROM cities")
    result = spark_engine.run(task(tmp_path, query, given))
    assert read(result.parts)["city"].to_pylist() == [None, None, "city-2", "city-3"]


def test_operations_carry_over_also_when_the_query_does_not_select_them(
    spark_engine: Engine, tmp_path: Path
) -> None:
    operations = [0, 2, 3, 1, 2, 3, 2, 3]
    changed = rows(0, 8).set_column(1, "op", pa.array(operations, pa.int32()))
    given = slices(tmp_path, changed.slice(0, 3), changed.slice(3))
    # Of the corrections 1→2, 4→5 and 6→7 the second loses its end, the third its beginning.
    query = sql("SELECT event_time, population FROM cities WHERE population NOT IN (5, 6)")
    result = spark_engine.run(task(tmp_path, query, given))
    found = read(result.parts)
    assert found["population"].to_pylist() == [0, 1, 2, 3, 4, 7]
    assert found["op"].to_pylist() == [0, 2, 3, 1, 1, 0]
    carrying = sql("SELECT op, event_time, population FROM cities")
    result = spark_engine.run(task(tmp_path, carrying, given))
    assert read(result.parts)["op"].to_pylist() == operations


def test_operations_carry_over_through_steps_unions_and_generators(
    spark_engine: Engine, tmp_path: Path
) -> None:
    one = slices(tmp_path, rows(0, 1), rows(1, 1, op=1), alias="one")
    two = slices(tmp_path, rows(0, 2), alias="two")
    query = sql(
        "SELECT event_time, population FROM one",
        """WITH both AS (SELECT * FROM step0 UNION ALL SELECT event_time, population FROM two)
        SELECT event_time, n FROM both LATERAL VIEW explode(array(population, -1)) AS n""",
    )
    found = read(spark_engine.run(task(tmp_path, query, one, two)).parts)
    assert found["n"].to_pylist() == [0, -1, 1, -1, 0, -1, 1, -1]
    assert found["op"].to_pylist() == [0, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("operation", ["7", "-1", "CAST(NULL AS INT)"])
def test_an_operation_that_is_none_is_not_committed(
    spark_engine: Engine, tmp_path: Path, operation: str
) -> None:
    query = sql(f"SELECT event_time, {operation} AS op FROM cities")
    with pytest.raises(QueryError, match="which is no operation") as caught:
        spark_engine.run(task(tmp_path, query, slices(tmp_path, rows(0, 3))))
    assert caught.value.code == "E0517"


def test_validation_gives_the_schema_without_any_data(spark_engine: Engine) -> None:
    query = sql("SELECT event_time, city, population * 1.5 AS more FROM cities")
    found = columns_of(spark_engine, "tests", query, [CITIES])
    assert found.names == ["event_time", "city", "more"]
    assert pa.types.is_decimal(found.field("more").type)
    assert not found.field("event_time").nullable


REFUSED = {
    "SELECT event_time, populaton FROM cities": ("E0501", 1, 20, "population"),
    "SELECT event_time,\n  nope(city) AS x FROM cities": ("E0501", 2, 3, ""),
    "SELEC event_time FROM cities": ("E0501", 1, 1, ""),
    "SELECT * FROM citis": ("E0504", 1, 15, "cities"),
    "SELECT event_time, current_timestamp() AS t FROM cities": ("E0505", 1, 20, ""),
    "SELECT event_time, rand() AS r FROM cities": ("E0505", 1, 20, ""),
    "SELECT city FROM cities": ("E0515", None, None, "event_time"),
    "SELECT CAST(event_time AS STRING) AS event_time FROM cities": ("E0516", None, None, "CAST"),
    "SELECT event_time, offset FROM cities": ("E0514", None, None, ""),
    "SELECT event_time, CAST(op AS STRING) AS op FROM cities": ("E0514", None, None, "AS INT"),
    "SELECT event_time, CAST(op AS BIGINT) AS op FROM cities": ("E0514", None, None, "AS INT"),
    "SELECT event_time, OP FROM cities": ("E0514", None, None, "`op`"),
    "SELECT event_time, row_number() OVER (ORDER BY offset) AS n,\n"
    "lag(city) OVER (ORDER BY event_time) AS x FROM cities": (
        "E0506",
        2,
        1,
        "ORDER BY event_time, city, offset",
    ),
    "SELECT event_time, 1 AS a, 2 AS A FROM cities": ("E0511", None, None, ""),
    "SELECT event_time, NULL AS a FROM cities": ("E0510", None, None, ""),
    "SELECT event_time, DATE'2024-05-01' - DATE(event_time) AS a FROM cities": (
        "E0510",
        None,
        None,
        "cast it",
    ),
    "SELECT event_time, map('a', 1) AS a FROM cities": ("E0510", None, None, ""),
}


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_that_cannot_be_kept_is_refused_with_place_and_help(
    spark_engine: Engine, query: str
) -> None:
    code, line, column, hint = REFUSED[query]
    with pytest.raises(OdfbuildError) as caught:
        columns_of(spark_engine, "tests", sql(query), [CITIES])
    error = caught.value.errors[0] if isinstance(caught.value, Errors) else caught.value
    assert error.code == code
    assert hint in (error.help or "")
    assert error.help
    if line is not None:
        assert error.location is not None
        assert (error.location.file, error.location.line) == ("queries[0]", line)
        assert error.location.column == column


FAILFAST = "map('mode', 'FAILFAST')"
FAILS = {
    f"from_json(city, 'a INT', {FAILFAST}).a": ("Malformed records", "mode", True),
    f"from_csv(city, 'a INT', {FAILFAST}).a": ("city-0", "", True),
    "CAST(parse_json(city) AS STRING)": ("city-0", "try_parse_json", True),
    "from_json(concat('{\"a\":\"', city, '\"}'), 'a DATE', "
    "map('dateFormat', 'yyyy', 'mode', 'FAILFAST')).a": ("", "", True),
    "split(city, concat('(', city))[0]": ("Unclosed group", "", False),
    "CAST(unbase64(concat('%%%', city)) AS STRING)": ("valid bits", "", False),
    "sequence(population, -1, 1)[0]": ("Illegal sequence boundaries", "", False),
    "repeat(city, 2147483647)": ("overflow", "", False),
    "to_csv(struct(city), map('sep', ''))": ("Delimiter", "", False),
}


@pytest.mark.parametrize("count", [3, 30_000])
@pytest.mark.parametrize("expression", FAILS)
def test_whatever_an_expression_throws_is_told_without_a_stack(
    spark_engine: Engine, tmp_path: Path, expression: str, count: int
) -> None:
    """Some of it are exceptions of Java that PySpark does not translate, or that have no name."""
    message, way_out, placed = FAILS[expression]
    query = sql(f"SELECT event_time,\n  {expression} AS x FROM cities")
    with pytest.raises(QueryError) as caught:
        spark_engine.run(task(tmp_path, query, slices(tmp_path, rows(0, count))))
    error = caught.value
    assert error.code == "E0517", error
    told = "\n".join((error.message, *error.notes, error.help or ""))
    assert message in told
    assert way_out in (error.help or "")
    assert "\tat " not in told
    assert len(told) < 1_000
    if placed:
        assert error.location is not None
        assert error.location.line == 2


def test_a_name_that_java_does_not_know_is_a_fault_of_the_query(spark_engine: Engine) -> None:
    query = sql("SELECT event_time, 'x' COLLATE nope AS x FROM cities")
    with pytest.raises(QueryError, match="nope") as caught:
        columns_of(spark_engine, "tests", query, [CITIES])
    assert caught.value.code == "E0501"


def test_a_record_that_makes_a_valid_query_fail_is_the_data_s_fault(
    spark_engine: Engine, tmp_path: Path
) -> None:
    query = sql("SELECT event_time,\n  CAST(city AS INT) AS n FROM cities")
    with pytest.raises(QueryError) as caught:
        spark_engine.run(task(tmp_path, query, slices(tmp_path, rows(0, 3))))
    assert caught.value.code == "E0517"
    assert "city-0" in caught.value.message
    assert caught.value.location == InDefinition.query(
        0, 2, 3, "  CAST(city AS INT) AS n FROM cities", len("CAST(city AS INT)")
    )
