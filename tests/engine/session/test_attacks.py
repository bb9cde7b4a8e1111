"""Queries that reach for more than their inputs, or read the clock, are refused.

What is let through is listed, so these are samples of everything else: other spellings, other
places in a query than in the shared vectors.
"""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine, InputSlices
from odfbuild.errors import Errors, OdfbuildError, QueryError
from tests.cli.wrong.queries import WRONG
from tests.engine.inputs import SCHEMA, columns_of, sql
from tests.engine.stepwise import VOCAB

pytestmark = pytest.mark.spark

COMMANDS = """
INSERT OVERWRITE DIRECTORY '{folder}/out' USING csv SELECT city FROM cities
INSERT OVERWRITE LOCAL DIRECTORY '{folder}/out' SELECT city FROM cities
FROM cities INSERT OVERWRITE DIRECTORY '{folder}/out' USING csv SELECT city
CREATE TABLE x USING csv LOCATION '{folder}/out' AS SELECT * FROM cities
CREATE TEMPORARY VIEW x USING csv OPTIONS (path '/etc/passwd')
CREATE FUNCTION f AS 'java.lang.Runtime'
CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1
DROP VIEW cities
SET spark.sql.runSQLOnFiles=true
RESET
ADD JAR '/tmp/x.jar'
ADD FILE '/etc/passwd'
LIST FILES
CACHE TABLE cities
REFRESH '/etc'
LOAD DATA INPATH '/etc/passwd' INTO TABLE cities
EXPLAIN SELECT * FROM cities
DESCRIBE cities
SHOW TABLES
USE default
TRUNCATE TABLE cities
MERGE INTO cities USING cities AS s ON true WHEN MATCHED THEN DELETE
DELETE FROM cities
DECLARE VARIABLE v INT DEFAULT 1
EXECUTE IMMEDIATE 'SELECT 1'
BEGIN SELECT 1; END
CALL system.f()
SELECT 1; DROP VIEW cities
"""
RELATIONS = """
SELECT * FROM parquet.`/etc/passwd`
SELECT * FROM `text`.`/etc/passwd`
SELECT * FROM json.`file:///etc/passwd`
SELECT * FROM binaryFile.`/etc`
SELECT * FROM avro.`/etc/passwd`
SELECT * FROM orc.`hdfs://host/x`
SELECT * FROM spark_catalog.default.cities
SELECT * FROM global_temp.cities
SELECT * FROM information_schema.tables
SELECT * FROM system.session.cities
SELECT * FROM session.cities
SELECT * FROM `/etc/passwd`
SELECT * FROM cities VERSION AS OF 1
SELECT * FROM cities TIMESTAMP AS OF '2024-01-01'
SELECT * FROM STREAM(cities)
SELECT * FROM IDENTIFIER('cities')
SELECT * FROM (TABLE text.`/etc/passwd`)
SELECT * FROM cities WHERE city IN (SELECT value FROM text.`/etc/passwd`)
SELECT event_time, (SELECT max(value) FROM text.`/etc/passwd`) FROM cities
SELECT * FROM cities, LATERAL (SELECT * FROM text.`/etc/passwd`)
WITH w AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM w
FROM cities |> UNION ALL TABLE text.`/etc/passwd`
SELECT * FROM cities ORDER BY (SELECT max(value) FROM text.`/etc/passwd`)
SELECT transform(array(1), x -> (SELECT max(value) FROM text.`/etc/passwd`)) FROM cities
SELECT * FROM __odf_versions_0
SELECT TRANSFORM (city) USING 'cat' FROM cities
MAP city USING 'cat' AS x FROM cities
REDUCE city USING 'cat' AS x FROM cities
SELECT * FROM sql_keywords()
SELECT * FROM collations()
SELECT * FROM python_worker_logs()
SELECT * FROM cities TABLESAMPLE (10 PERCENT)
SELECT /*+ BROADCAST(cities) */ * FROM cities WHERE city = :p
SELECT * FROM cities WHERE city = ?
"""
FUNCTIONS = """
reflect('java.lang.System', 'getenv', 'HOME')
java_method('java.lang.System', 'exit', 1)
try_reflect('java.lang.System', 'getenv', 'HOME')
system.builtin.reflect('java.lang.System', 'getenv', 'HOME')
`reflect`('java.lang.System', 'getenv')
REFLECT('java.lang.System', 'getenv')
transform(array(1), x -> reflect('java.lang.System', 'getenv'))
aggregate(array(1), 0, (a, b) -> cast(rand() AS INT))
CASE WHEN population > 1 THEN reflect('java.lang.System', 'getenv') END
max(city) FILTER (WHERE reflect('java.lang.System', 'getenv') IS NULL)
row_number() OVER (ORDER BY uuid())
input_file_name()
monotonically_increasing_id()
spark_partition_id()
current_user
user()
session_user
current_catalog()
current_schema()
current_timezone()
version()
uuid()
rand(1)
randn()
shuffle(array(1, 2))
randstr(5)
uniform(1, 9)
aes_encrypt('a', '0000111122223333')
xpath('<a/>', '/a')
from_xml('<a/>', 'x INT')
from_avro(binary(city), '{}')
to_protobuf(named_struct('a', 1), 'M', '/tmp/x.desc')
some_function_of_the_future(city)
current_timestamp
now()
current_date + INTERVAL '1' DAY
date_add(curdate(), 1)
localtimestamp()
current_time()
unix_timestamp()
TIMESTAMP 'now'
TIMESTAMP /* a comment */ ' now '
DATE "tomorrow"
timestamp_ltz'today'
CAST('now' AS TIMESTAMP)
TRY_CAST('yesterday' AS DATE)
'now'::timestamp
CAST(concat('no', 'w') AS TIMESTAMP)
CAST(lower('TODAY') AS DATE)
timestamp('now')
date('today')
to_date('today')
to_timestamp('now')
try_to_timestamp('now')
to_timestamp_ltz('now')
year('now')
date_trunc('DAY', 'now')
date_add('today', 1)
datediff(event_time, 'today')
event_time > 'now'
event_time BETWEEN 'yesterday' AND 'today'
event_time IN ('now')
coalesce(event_time, 'now')
nullif('now', event_time)
array(event_time, 'now')
greatest(event_time, 'now')
CASE WHEN population > 1 THEN event_time ELSE 'now' END
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("--")]


def queries(file: str) -> list[str]:
    return lines((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))


def verdict(engine: Engine, query: str) -> str:
    """`refused`, or what the query gives."""
    cities = InputSlices(alias="cities", schema=SCHEMA, vocab=VOCAB)
    try:
        schema = columns_of(engine, "attack", sql(query), [cities])
    except OdfbuildError:
        return "refused"
    return f"gives {schema.names}"


def test_commands_are_refused_and_not_carried_out(spark_engine: Engine, tmp_path: Path) -> None:
    given = [query.replace("{folder}", str(tmp_path)) for query in lines(COMMANDS)]
    found = {query: verdict(spark_engine, query) for query in given}
    assert {query: what for query, what in found.items() if what != "refused"} == {}
    assert list(tmp_path.iterdir()) == []
    assert verdict(spark_engine, "SELECT event_time FROM cities") == "gives ['event_time']"


def test_relations_that_are_no_inputs_are_refused(spark_engine: Engine) -> None:
    given = lines(RELATIONS)
    found = {query: verdict(spark_engine, query) for query in given}
    assert {query: what for query, what in found.items() if what != "refused"} == {}


def test_code_environment_randomness_and_the_clock_are_refused(spark_engine: Engine) -> None:
    found = {}
    for expression in lines(FUNCTIONS):
        grouped = " GROUP BY event_time" if expression.startswith("max(") else ""
        query = f"SELECT event_time, {expression} AS x FROM cities{grouped}"
        found[expression] = verdict(spark_engine, query)
    assert {text: what for text, what in found.items() if what != "refused"} == {}


HARMLESS = [
    "'now' = city",
    "city IN ('now', 'today')",
    "'${env:HOME}'",
    "concat('current', '_timestamp()')",
    "CAST('2024-01-01 00:00:00Z' AS TIMESTAMP)",
    "unix_timestamp(event_time)",
    "sequence(1, 3)",
    "`event_time`",
]


def test_words_that_only_look_like_an_attack_are_accepted(spark_engine: Engine) -> None:
    for expression in HARMLESS:
        query = f"SELECT event_time, {expression} AS x FROM cities -- rand()"
        assert verdict(spark_engine, query) == "gives ['event_time', 'x']", expression


def test_what_hides_the_clock_or_depends_on_the_order_of_rows_is_refused(
    spark_engine: Engine,
) -> None:
    # Once more: classes of expressions that were met before are told apart by their names.
    for _ in range(2):
        found = {query: verdict(spark_engine, query) for query in queries("refused.sql")}
        assert {query: what for query, what in found.items() if what != "refused"} == {}


def test_the_queries_that_people_write_are_accepted(spark_engine: Engine) -> None:
    found = {query: verdict(spark_engine, query) for query in queries("accepted.sql")}
    assert [query for query, what in found.items() if what == "refused"] == []


def test_what_is_refused_for_its_text_the_engine_refuses_for_the_same_reason(
    spark_engine: Engine,
) -> None:
    people = [("id", pa.int64()), ("name", pa.string()), ("city", pa.string())]
    inputs = [
        InputSlices(
            alias="cities", schema=SCHEMA.append(pa.field("area", pa.float64())), vocab=VOCAB
        ),
        InputSlices(alias="people", schema=pa.schema([*list(SCHEMA)[:4], *people]), vocab=VOCAB),
    ]
    for marked, code, *_ in WRONG:
        query = marked.replace("«", "").replace("»", "")
        with pytest.raises((OdfbuildError, Errors)) as caught:
            columns_of(spark_engine, "x", sql(query), inputs)
        expected = "E0501" if code == "E0550" else code  # which it takes for a syntax error
        assert expected in [each.code for each in caught.value.apart()], query


@pytest.mark.parametrize(
    ("query", "what", "help"),
    [
        (
            "SELECT max(event_time) AS event_time, avg(population) AS x FROM cities",
            "avg() of BIGINT adds them as floating point numbers",
            "SUM(cities.population) / COUNT(cities.population)",
        ),
        (
            "SELECT max(event_time) AS event_time, try_sum(population) AS x FROM cities",
            "whether try_sum() gives NULL depends on the order of rows",
            "AS DECIMAL(20, 0))",
        ),
        (
            "SELECT event_time, nvl2(1, 'now', 'x')::date AS x FROM cities",
            "CAST of 'now' reads the clock",
            "use the event time",
        ),
        (
            "SELECT event_time, DATE '\\u0074oday' AS x FROM cities",
            "may read the clock: what it says cannot be seen",
            "in digits",
        ),
        (
            "SELECT max(event_time) AS event_time, c COLLATE UTF8_BINARY AS c FROM "
            "(SELECT event_time, city COLLATE UTF8_LCASE AS c FROM cities) GROUP BY c",
            "has a collation: which of several spellings stays depends on the order of rows",
            "lower()",
        ),
    ],
)
def test_a_refusal_says_why_and_what_to_write(
    spark_engine: Engine, query: str, what: str, help: str
) -> None:
    cities = InputSlices(alias="cities", schema=SCHEMA, vocab=VOCAB)
    with pytest.raises(QueryError) as caught:
        columns_of(spark_engine, "attack", sql(query), [cities])
    assert what in caught.value.message
    assert help in (caught.value.help or "")


AMBIGUOUS = [
    "SELECT event_time, upper(city) AS town, population, row_number() OVER (ORDER BY event_time)"
    " AS n FROM cities",
    "SELECT event_time, lag(population * 2) OVER (PARTITION BY city ORDER BY event_time DESC)"
    " AS x FROM cities",
    "SELECT event_time, sum(population * 2) OVER (ORDER BY event_time ROWS 1 PRECEDING) AS x"
    " FROM cities",
    "SELECT event_time, population, row_number() OVER (ORDER BY length(city) DESC) AS n"
    " FROM cities",
    "SELECT a.event_time, a.city, b.population, row_number() OVER (ORDER BY a.offset) AS x"
    " FROM cities a LEFT JOIN cities b ON a.city = b.city",
    "SELECT event_time, upper(city) AS c FROM cities ORDER BY event_time LIMIT 3",
    "SELECT max(event_time) AS event_time, city, sum(population) AS p,"
    " row_number() OVER (ORDER BY sum(population)) AS n FROM cities GROUP BY city",
    "SELECT event_time, row_number() OVER (ORDER BY event_time) AS x, city FROM"
    " (SELECT event_time, city COLLATE UTF8_LCASE AS city FROM cities)",
    "SELECT event_time, `the city`, last_value(`the city`) OVER (ORDER BY event_time) AS x"
    " FROM (SELECT event_time, city AS `the city` FROM cities)",
    "SELECT event_time, avg(population + 1) OVER (PARTITION BY city) AS x FROM cities",
]


@pytest.mark.parametrize("query", AMBIGUOUS)
def test_the_help_for_an_order_with_ties_can_be_followed(spark_engine: Engine, query: str) -> None:
    cities = InputSlices(alias="cities", schema=SCHEMA, vocab=VOCAB)
    with pytest.raises(QueryError) as caught:
        columns_of(spark_engine, "attack", sql(query), [cities])
    assert caught.value.code == "E0506"
    assert "aggregateexpression" not in caught.value.message
    help = caught.value.help or ""
    assert "_w" not in help
    if "ORDER BY" in help:
        advised = "ORDER BY" + help.partition("ORDER BY")[2]
        followed = re.sub(r"ORDER BY .*?(?= ROWS| LIMIT|\) AS)", lambda _: advised, query)
    else:
        followed = query.replace("avg(population + 1)", help.partition(": ")[2].split(" / ")[0])
    assert followed != query
    assert verdict(spark_engine, followed) != "refused", followed
