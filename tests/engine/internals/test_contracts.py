"""What `engine/spark/internals` relies on in Spark, beside what Spark documents.

A release of Spark that changes one of these fails here, with the name of the function that has to
change. Each test says in its name what is relied on.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from odfbuild.engine.release import PINNED
from odfbuild.engine.spark import internals
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.internals import connect, process, records, status
from odfbuild.engine.spark.internals.catalyst import OUTLINED, Catalyst, plan_of
from odfbuild.engine.spark.internals.jvm import CONSTRUCTORS, classes_in, items, name_of
from odfbuild.engine.spark.internals.node import Node, Part
from odfbuild.engine.spark.queries.findings import from_spark
from odfbuild.engine.spark.results import small_jobs
from odfbuild.engine.spark.results.local_rows import QUICK
from odfbuild.sql import functions as lists

pytestmark = pytest.mark.spark

ENGINE = Path(internals.__file__).parent.parent
_SQL = "org.apache.spark.sql."
NEWER = {"CurrentTimestampNanos"}
"""Classes that only the newest release has, which rules name all the same."""
BEGINNINGS = {"Greater"}
PARTS = [
    (name, kind, path)
    for name, part in vars(Node).items()
    if isinstance(part, Part)
    for kind, path in part.paths.items()
]


@pytest.fixture(scope="module")
def spark(spark_engine: SparkEngine) -> Iterator[SparkSession]:
    with spark_engine.request("contracts") as session:
        small_jobs.tune(session, ())
        catalyst = Catalyst(session)
        numbers = session.range(3).selectExpr(
            "id", "CAST(id AS INT) AS n", "timestamp_seconds(id) AS t", "array(id) AS a"
        )
        catalyst.show(numbers, "numbers")
        yield session


@pytest.fixture(scope="module")
def catalyst(spark: SparkSession) -> Catalyst:
    return Catalyst(spark)


@cache
def class_names() -> dict[str, str]:
    """Classes of plans, expressions and what they are made of, by their names without package."""
    found: dict[str, str] = {}
    for jar in sorted((process.spark_home() / "jars").glob("spark-*.jar")):  # Catalyst's is first
        for name in ZipFile(jar).namelist():
            match = re.match(
                f"({_SQL.replace('.', '/')}(?:catalyst|types|execution)/[\\w/]+)\\$?\\.c", name
            )
            if match:
                full = match[1].replace("/", ".")
                found.setdefault(full.rpartition(".")[2], full)
    return found


def class_of(spark: SparkSession, kind: str) -> Any:
    jvm: Any = spark._jvm
    name = kind if "." in kind else class_names().get(kind)
    assert name is not None, f"there is no class {kind}"
    return jvm.java.lang.Class.forName(name)


def analysed(catalyst: Catalyst, sql: str) -> Node:
    return catalyst.analyse(catalyst.parse(sql))


def inside(node: Node) -> Iterator[Node]:
    """A plan or an expression, and all that is in it."""
    yield node
    for child in node.children:
        yield from inside(child)
    if node._java.getClass().getName().startswith(_SQL + "catalyst.plans."):
        for each in node.expressions:
            yield from inside(each)


def first(node: Node, kind: str) -> Node:
    return next(each for each in inside(node) if each.kind == kind)


def values(catalyst: Catalyst, plan: Node) -> list[tuple[object, ...]]:
    return [tuple(row) for row in catalyst.frame(plan).collect()]


# --- Classes, their methods and constructors ---


@pytest.mark.parametrize(("name", "kind", "path"), PARTS, ids=str)
def test_a_class_of_catalyst_has_the_methods_that_a_part_of_a_node_comes_from(
    spark: SparkSession, name: str, kind: str, path: str
) -> None:
    why = f"internals.node.Node.{name} relies on {kind}.{path}()"
    assert kind in class_names(), why
    of = class_of(spark, kind)
    context: Any = spark.sparkContext
    nothing = context._gateway.new_array(context._jvm.java.lang.Class, 0)
    for method in path.split("."):
        try:
            of = of.getMethod(method, nothing).getReturnType()
        except Py4JJavaError:
            pytest.fail(why)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_constructor_takes_what_it_is_given_by_position(spark: SparkSession, name: str) -> None:
    of = class_of(spark, name)
    taken = [
        " ".join(str(each.getSimpleName()) for each in constructor.getParameterTypes())
        for constructor in of.getConstructors()
    ]
    assert CONSTRUCTORS[name] in taken, f"internals.jvm.CONSTRUCTORS: {name} takes {taken}"


def test_everything_else_that_is_looked_up_in_the_jvm_is_there(spark: SparkSession) -> None:
    known = classes_in(spark._jvm)
    assert name_of(known.view_schema_mode) == "SchemaUnsupported", "internals.catalyst.show"
    assert str(known.skip) == "SKIP", "internals.catalyst.analyse"


def kinds_named() -> dict[str, str]:
    """Names of classes that stand in the modules of the engine, and where."""
    found = {}
    for file in sorted(ENGINE.rglob("*.py")):
        if file.parent.name == "internals" or "internals.node" not in file.read_text():
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and re.fullmatch(r"(?:[A-Z][a-z]+){1,5}", value):
                found[value] = f"{file.name}:{getattr(node, 'lineno', 1)}"
    for group in (lists.PLANS, lists.LEAVES, lists.ROW_WISE, lists.CLOCK_EXPRESSIONS):
        found |= dict.fromkeys(group, "functions.py")
    for group in (lists.ENVIRONMENT_EXPRESSIONS, lists.ORDER_FREE_AGGREGATES, lists.COUNTS):
        found |= dict.fromkeys(group, "functions.py")
    for group in (lists.NUMERIC_AGGREGATES, lists.ORDER_BOUND_WINDOWS, lists.RANKS):
        found |= dict.fromkeys(group, "functions.py")
    found |= dict.fromkeys(lists.COLLECTIONS | lists.FIXES.keys() | lists.CONSTRUCTS.keys(), "")
    return found | dict.fromkeys(QUICK, "local_rows.py")


def test_every_kind_of_node_that_a_rule_names_is_a_class_of_spark() -> None:
    unknown = {kind: place for kind, place in kinds_named().items() if kind not in class_names()}
    assert unknown.keys() <= NEWER | BEGINNINGS, unknown


# --- What is read off a node ---


def test_a_node_tells_where_in_the_query_it_stands(catalyst: Catalyst) -> None:
    sql = "SELECT\n  n + 1 FROM numbers"
    plan = catalyst.parse(sql)
    assert first(plan, "Add").position == (2, 3), "internals.node.Node.position"
    assert first(plan, "Add").text_in(sql) == "n + 1", "internals.node.Node.text_in"


def test_conditions_stand_in_filters_as_they_are_and_in_joins_as_options(
    catalyst: Catalyst,
) -> None:
    why = "internals.node.Node.condition"
    filtered = analysed(catalyst, "SELECT * FROM numbers WHERE n > 1")
    joined = analysed(catalyst, "SELECT * FROM numbers x LEFT JOIN numbers y ON x.n = y.n")
    crossed = analysed(catalyst, "SELECT * FROM numbers x CROSS JOIN numbers y")
    lateral = analysed(catalyst, "SELECT * FROM numbers x, LATERAL (SELECT x.n + 1 AS m)")
    assert [first(filtered, "Filter").condition.kind] == ["GreaterThan"], why
    assert first(joined, "Join").condition.kind == "EqualTo", why
    assert first(crossed, "Join").condition is None, why
    assert first(lateral, "LateralJoin").condition is None, why
    assert first(joined, "Join").join_type == "LeftOuter", "internals.node.Node.join_type"
    assert first(joined, "Join").join_words == "LEFT OUTER", "internals.node.Node.join_words"
    assert first(crossed, "Join").join_type == "Cross"
    assert first(lateral, "LateralJoin").right.plan.kind == "SubqueryAlias"


def test_an_order_tells_its_direction_in_sql(catalyst: Catalyst) -> None:
    sort = first(analysed(catalyst, "SELECT * FROM numbers ORDER BY n DESC"), "Sort")
    assert sort.is_global
    assert sort.order[0].direction == ("DESC", "NULLS LAST"), "internals.node.Node.direction"


def test_a_rollup_is_an_expand_with_a_row_for_each_grouping(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT n, COUNT(*) FROM numbers GROUP BY ROLLUP (n)")
    rows = first(plan, "Expand").projections
    assert [len(row) for row in rows] == [len(first(plan, "Expand").output)] * 2


def test_an_input_is_a_view_under_the_name_that_it_was_given(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT * FROM Numbers")
    assert first(plan, "View").view == "numbers", "internals.node.Node.view"
    assert first(plan, "SubqueryAlias").children[0].kind == "View"


def test_a_relation_over_files_tells_what_it_reads_and_how(
    catalyst: Catalyst, spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(1).write.csv(str(tmp_path / "x"), header=True)
    frame = spark.read.option("header", "true").schema("id INT").csv(str(tmp_path / "x"))
    files = plan_of(frame).files
    assert files is not None, "internals.node.Node.files"
    assert files.format == "csv"
    assert files.options["header"] == "true"
    assert '"id"' in files.schema
    assert [root.endswith("/x") for root in files.roots] == [True]
    assert all(each.endswith(".csv") for each in files.files)
    assert plan_of(spark.range(1)).files is None


def test_a_parsed_query_tells_names_before_they_are_looked_up(catalyst: Catalyst) -> None:
    why = "internals.node.Node.name_parts"
    plan = catalyst.parse("WITH x AS (SELECT 1) SELECT up(1), a.b(2) FROM c.d, range(3)")
    assert [name for name, _ in plan.named_queries] == ["x"], "internals.node.Node.named_queries"
    assert not plan.is_recursive
    query = plan.child
    assert first(query, "UnresolvedRelation").name_parts == ["c", "d"], why
    assert not first(query, "UnresolvedRelation").is_streaming
    called = [each for each in inside(query) if each.kind == "UnresolvedFunction"]
    assert [each.name_parts for each in called] == [["up"], ["a", "b"]], why
    table = first(query, "UnresolvedTableValuedFunction")
    assert (table.name_parts, len(table.arguments)) == (["range"], 1), why
    view = catalyst.parse("SELECT * FROM x LATERAL VIEW boom(1) t AS y")
    assert first(view, "UnresolvedGenerator").name_parts == ["boom"], why


def test_a_constant_interval_tells_its_microseconds(catalyst: Catalyst) -> None:
    why = "internals.node.Node.interval"
    days = analysed(catalyst, "SELECT INTERVAL '1' DAY AS i")
    assert first(days, "Literal").interval == 86_400_000_000, why
    assert first(analysed(catalyst, "SELECT INTERVAL '1' MONTH AS i"), "Literal").interval is None
    assert first(analysed(catalyst, "SELECT 7 AS i"), "Literal").interval is None
    assert first(analysed(catalyst, "SELECT 7 AS i"), "Literal").number == 7


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("", False),
        ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", True),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", False),
    ],
)
def test_a_window_tells_whether_it_counts_rows(
    catalyst: Catalyst, frame: str, expected: bool
) -> None:
    plan = analysed(catalyst, f"SELECT SUM(n) OVER (ORDER BY id {frame}) AS s FROM numbers")
    found = first(plan, "WindowExpression")
    assert found.has_row_frame is expected, "internals.node.Node.has_row_frame"
    assert found.function.function.kind == "Sum"
    assert first(plan, "Window").order[0].child.kind == "AttributeReference"


def test_columns_of_time_windows_and_sessions_are_marked_in_their_metadata(
    catalyst: Catalyst,
) -> None:
    why = "internals.node.Node.is_time_window, .is_session_window"
    query = "SELECT COUNT(*) AS c FROM numbers GROUP BY {}(t, '10 seconds')"
    window = first(analysed(catalyst, query.format("window")), "Aggregate").grouping[0]
    session = first(analysed(catalyst, query.format("session_window")), "Aggregate").grouping[0]
    assert (window.is_time_window, window.is_session_window) == (True, False), why
    assert (session.is_time_window, session.is_session_window) == (False, True), why
    assert not window.child.is_time_window if window.kind == "Alias" else True


def test_the_length_of_a_time_window_is_added_to_its_start(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT COUNT(*) AS c FROM numbers GROUP BY window(t, '10 seconds')")
    added = [each for each in inside(plan) if each.kind == "Add" and each.right.kind == "Literal"]
    assert 10_000_000 in [each.right.number for each in added], "queries.modes.shape"
    converted = first(plan, "PreciseTimestampConversion")
    assert converted.type in ("long", "timestamp"), "queries.modes.shape"


def test_a_collation_stands_in_the_full_name_of_a_type(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT 'a' COLLATE UNICODE_CI AS x, 1.5BD AS d")
    text, number = plan.columns
    assert text.full_type.lower() == "string collate unicode_ci", "internals.node.Node.full_type"
    assert number.full_type == "decimal(2,1)"
    assert number.type == "decimal(2,1)", "internals.node.Node.type"


def test_two_expressions_are_the_same_but_for_how_they_are_written(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT n + 1 AS x, 1 + n AS y, n + 2 AS z FROM numbers")
    one, same, other = (column.child for column in plan.columns)
    assert one.means(same), "internals.node.Node.means"
    assert not one.means(other)
    assert one == first(plan, "Add"), "internals.node.Node.__eq__"
    assert {one: 1}[first(plan, "Add")] == 1, "internals.node.Node.__hash__"


# --- Parser, analyser, optimiser ---


def test_named_queries_can_be_put_where_they_are_used(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "WITH x AS (SELECT n FROM numbers) SELECT * FROM x, x AS y")
    kinds = {each.kind for each in inside(catalyst.inline(plan))}
    assert not kinds & {"WithCTE", "CTERelationRef", "CTERelationDef"}, "internals.catalyst.inline"


def test_a_command_is_analysed_and_not_carried_out(catalyst: Catalyst, spark: SparkSession) -> None:
    analysed(catalyst, "CREATE TEMPORARY VIEW never AS SELECT 1")
    assert not spark.catalog.tableExists("never"), "internals.catalyst.analyse"


def test_a_view_is_made_in_place_of_an_earlier_one(catalyst: Catalyst, spark: SparkSession) -> None:
    for number in (1, 2):
        catalyst.show(spark.sql(f"SELECT {number} AS x"), "shown")
        assert spark.table("shown").collect()[0].x == number, "internals.catalyst.show"


def test_the_optimiser_tells_whether_two_plans_are_the_same(
    catalyst: Catalyst, spark: SparkSession
) -> None:
    one = spark.sql("SELECT n FROM numbers WHERE n > 1 AND id > 0")
    same = spark.sql("SELECT n FROM (SELECT * FROM numbers WHERE id > 0) WHERE n > 1")
    other = spark.sql("SELECT n FROM numbers WHERE n > 2 AND id > 0")
    assert catalyst.are_same(one, same), "internals.catalyst.are_same"
    assert not catalyst.are_same(one, other)


def test_classes_tell_subqueries_replaceable_and_random_expressions(catalyst: Catalyst) -> None:
    why = "internals.catalyst.kind_of"
    plan = analysed(catalyst, "SELECT nvl(n, 1), rand(), (SELECT 1) FROM numbers")
    replaceable, random, subquery = (column.child for column in plan.columns)
    assert catalyst.kind_of(replaceable).is_replaceable, why
    assert catalyst.replacement(replaceable) is not None, "internals.catalyst.replacement"
    assert catalyst.inherits(replaceable), "internals.catalyst.inherits"
    assert replaceable.parameters
    assert catalyst.kind_of(random).is_random, why
    assert catalyst.kind_of(subquery).holds_plan, why
    assert subquery.plan.columns[0].kind == "Alias"
    assert catalyst.replacement(random) is None


def test_an_expression_as_json_names_the_classes_in_it_and_types_of_casts(
    catalyst: Catalyst,
) -> None:
    plan = analysed(catalyst, "SELECT CAST(n AS STRING) AS x FROM numbers")
    cast = plan.columns[0].child
    for each in inside(cast):
        catalyst.kind_of(each)
    parts = catalyst.parts_of(cast)
    assert parts is not None, "internals.catalyst.parts_of"
    assert [(kind.name, of) for kind, of in parts if kind.name == "Cast"] == [("Cast", "string")]


def test_casts_that_the_query_asks_for_are_marked(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT CAST(n AS DOUBLE) AS x, n + 1.5D AS y FROM numbers")
    written, added = (column.child for column in plan.columns)
    assert catalyst.is_written(written), "internals.catalyst.is_written"
    assert not catalyst.is_written(added.left)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [("'a' || 'b'", "ab"), ("nvl(NULL, 'c')", "c"), ("CAST(n AS STRING)", None)],
)
def test_the_value_of_an_expression_without_columns_can_be_asked_for(
    catalyst: Catalyst, sql: str, expected: str | None
) -> None:
    plan = analysed(catalyst, f"SELECT {sql} AS x FROM numbers")
    assert catalyst.constant(plan.columns[0].child) == expected, "internals.catalyst.constant"


def test_the_registry_tells_class_and_group_of_a_function(catalyst: Catalyst) -> None:
    functions = catalyst.functions()
    assert functions["avg"] == ("Average", "agg_funcs"), "internals.catalyst.functions"
    assert functions["upper"] == ("Upper", "string_funcs")


# --- Nodes that are made ---


def test_plans_can_be_made_of_nodes(catalyst: Catalyst) -> None:
    build = catalyst.build
    plan = analysed(catalyst, "SELECT id, n, t FROM numbers")
    id, n, t = plan.output
    more = build.alias(build.micros(t, "long") or t, "m")
    assert values(catalyst, build.project([id, more], plan)) == [(0, 0), (1, 10**6), (2, 2 * 10**6)]
    low = build.both(build.at_most(n, n), build.either(build.greater(n, n), build.same(n, n)))
    assert len(values(catalyst, build.filter(low, plan))) == 3
    assert values(catalyst, build.aggregate([n], [n], plan)) != []
    again = build.alias(build.called(n, "other"), "renamed", like=n)
    assert (again.id, again.name) == (n.id, "renamed"), "internals.catalyst.alias"
    assert build.named(n, "fresh").name == "fresh"
    assert len(values(catalyst, build.limit_of_each_partition(1, plan))) >= 1


def test_nodes_can_be_made_over_others(catalyst: Catalyst) -> None:
    build = catalyst.build
    left = analysed(catalyst, "SELECT n FROM numbers")
    right = analysed(catalyst, "SELECT n AS m FROM numbers")
    joined = build.join(left, right, [build.same(left.output[0], right.output[0])])
    assert sorted(values(catalyst, joined)) == [(0, 0), (1, 1), (2, 2)], "internals.catalyst.join"
    rows = [[left.output[0]], [left.output[0]]]
    made = build.generated(rows, [build.named(left.output[0], "twice")], left)
    assert len(values(catalyst, made)) == 6, "internals.catalyst.generated"
    column = left.columns[0]
    plus = first(analysed(catalyst, "SELECT 1 + 1 AS x"), "Alias")
    assert values(catalyst, build.with_expressions(left, {column: plus})) == [(2,)] * 3
    struct = analysed(catalyst, "SELECT named_struct('a', 5) AS s")
    field = build.alias(build.field_of(struct.output[0], "a"), "a")
    assert values(catalyst, build.project([field], struct)) == [(5,)], "internals.catalyst.field_of"


def test_subqueries_of_a_lateral_join_can_be_exchanged(catalyst: Catalyst) -> None:
    plan = analysed(catalyst, "SELECT * FROM numbers x, LATERAL (SELECT x.n + 1 AS m)")
    join = first(plan, "LateralJoin")
    made = catalyst.build.lateral(join, join.left, join.right.plan)
    assert len(values(catalyst, made)) == 3, "internals.catalyst.lateral"
    expand = first(
        analysed(catalyst, "SELECT n, COUNT(*) AS c FROM numbers GROUP BY ROLLUP (n)"), "Expand"
    )
    further = [column for column in expand.child.output if column.name == "id"]
    assert len(values(catalyst, catalyst.build.expand(expand, further, expand.child))) == 6


# --- Records as streams of Arrow ---


def test_records_are_handed_over_and_taken_back_as_streams_of_arrow(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"x": pa.array([1, 2], pa.int32())})
    given, taken = tmp_path / "given", str(tmp_path / "taken")
    with pa.ipc.new_stream(given, table.schema) as stream:
        stream.write_table(table)
    schema = StructType([StructField("x", IntegerType())])
    process.set_up(spark, records.IN_PLACE)
    try:
        frame = records.frame_of(spark, str(given), schema)
        assert records.write_computed(frame.selectExpr("x + 1 AS x"), taken, 100)
        assert pa.ipc.open_stream(taken).read_all()["x"].to_pylist() == [2, 3]
        both = frame.selectExpr("x + 1 AS x").unionAll(frame.where("x > 1").unionAll(frame))
        assert records.write_computed(both, taken, 5), "internals.records._computed"
        assert pa.ipc.open_stream(taken).read_all()["x"].to_pylist() == [2, 3, 2, 1, 2]
        assert not records.write_computed(both, taken, 4)
        assert not records.write_computed(frame.unionAll(spark.range(2)), taken, 100)
    finally:
        process.set_up(spark, records.BY_JOBS_ONLY)
    assert not records.write_computed(frame.selectExpr("x + 2 AS x"), taken, 100), (
        "internals.records.BY_JOBS_ONLY"
    )
    assert records.empty_frame(spark, schema).collect() == []


def test_a_job_gives_its_records_as_a_stream_of_arrow_and_sees_the_settings_of_its_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    taken = str(tmp_path / "taken")
    context = spark.sparkContext
    context.setLocalProperty("spark.sql.session.timeZone", None)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        told = "CAST(timestamp_seconds(id) AS STRING) AS t"
        records.write_collected(spark.range(0, 2, 1, 2).selectExpr("id", told), taken)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert pa.ipc.open_stream(taken).read_all().to_pydict() == {
        "id": [0, 1],
        "t": ["1970-01-01 09:00:00", "1970-01-01 09:00:01"],
    }
    assert context.getLocalProperty("spark.sql.session.timeZone") is None
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        records.write_collected(spark.range(1).selectExpr("1 / id AS x"), taken)
    records.write_collected(spark.range(0).selectExpr("id"), taken)
    assert pa.ipc.open_stream(taken).read_all().num_rows == 0


# --- The process, sessions, and what they say ---


def test_the_jvm_is_asked_once_what_a_name_means(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = spark._jvm
    assert jvm is not None

    def looked_up() -> tuple[int, str]:
        return jvm.java.lang.Math.max(1, 2), jvm.java.io.File.separator

    assert looked_up() == (2, "/")
    asked: list[str] = []
    client = jvm._gateway_client
    ask = type(client).send_command

    def counted(self: object, command: str, *more: Any, **options: Any) -> Any:
        asked.append(command)
        return ask(self, command, *more, **options)

    monkeypatch.setattr(type(client), "send_command", counted)
    assert looked_up() == (2, "/")
    # The call, and the field, which may have another value by now.
    assert [command.split("\n")[0] for command in asked if not command.startswith("m")] == [
        "c",
        "r",
    ]


@pytest.mark.parametrize("length", [0, 1, 2, 10, 11, 20, 21])
def test_lists_are_handed_over_whole_and_in_order(spark: SparkSession, length: int) -> None:
    jvm = spark._jvm
    assert jvm is not None
    given = [*range(length)]
    assert list(jvm.java.util.ArrayList(given)) == given
    assert list(jvm.java.util.ArrayList((*given, None))) == [*given, None]
    arrays = [jvm.java.lang.String("a,b").split(",") for _ in given]
    assert [[*each] for each in jvm.java.util.ArrayList(arrays)] == [["a", "b"]] * length


def test_settings_that_results_depend_on_are_settings_of_spark(spark: SparkSession) -> None:
    ours = {small_jobs.MARK}
    named = [*PINNED, *small_jobs._SHORT, *small_jobs._ONE_TASK, *records.IN_PLACE]
    unknown = [each for each in named if each not in ours and not spark.conf.isModifiable(each)]
    assert unknown == [], "engine.release.PINNED, results.small_jobs"


def test_java_is_opened_wherever_spark_looks_into_it(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    asked = str(jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()).split()
    given = process.module_options(Path("/nowhere"))
    base = [each for each in asked if each.startswith("--add-opens=java.base/")]
    missing = [each for each in base if each not in given]
    assert missing == [], "internals.process.module_options"


def test_pyspark_keeps_its_session_where_it_is_let_go() -> None:
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        assert getattr(SparkContext, name) is not None, f"internals.process.forget: {name}"
    for name in ("_instantiatedSession", "_activeSession"):
        assert hasattr(SparkSession, name), f"internals.process.forget: {name}"


def test_classes_of_spark_lie_where_a_jvm_looks_for_them() -> None:
    assert process.has_jars(process.spark_home())
    assert "PythonGatewayServer" in process.program(process.spark_home(), {})[-1]


def test_spark_tells_its_executors_and_how_far_stages_are(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert status.executors(context) == 1, "the driver counts as one: internals.status.executors"
    context.setJobGroup("contracts of stages", "")
    assert spark.range(0, 100, 1, 2).selectExpr("rand()").collect() != []
    [job] = context.statusTracker().getJobIdsForGroup("contracts of stages")
    info = context.statusTracker().getJobInfo(job)
    assert info is not None
    [stage] = status.stages(context, info.stageIds)
    assert (stage.tasks, stage.done) == (2, 2), "internals.status.stages"


def test_an_error_is_told_without_stack_and_query(spark: SparkSession) -> None:
    with pytest.raises(Exception) as caught:
        spark.sql("SELECT missing FROM numbers")
    assert "\tat " not in status.said(caught.value), "internals.status.said"
    assert "== SQL" not in status.message(caught.value), "internals.status.message"
    assert "UNRESOLVED_COLUMN" in status.message(caught.value)


def test_errors_name_line_column_and_what_was_probably_meant(spark: SparkSession) -> None:
    sql = "SELECT\n  idd FROM numbers"
    with pytest.raises(Exception) as caught:
        spark.sql(sql)
    found = from_spark(caught.value, "d", 0, sql)
    assert found.message == "there is no column 'idd'", "queries.findings.from_spark"
    assert found.help == "did you mean 'numbers.id'?" or "id" in str(found.help)
    assert found.location is not None
    assert (found.location.line, found.location.column) == (2, 3)
    with pytest.raises(Exception) as caught:
        spark.sql("SELECT 1 FROM FROM")
    assert from_spark(caught.value, "d", 0, "SELECT 1 FROM FROM").location is not None


def test_an_extended_explanation_holds_the_analysed_plan(spark: SparkSession) -> None:
    def frame() -> DataFrame:
        return spark.sql("SELECT n + 1 AS x FROM numbers")

    assert connect.analysis(frame()) == connect.analysis(frame()), "internals.connect.analysis"
    assert "Project [(n#" in connect.analysis(frame())
    assert connect.analysis(frame()) != connect.analysis(frame().limit(1))


def test_the_client_of_spark_connect_has_what_is_asked_of_it() -> None:
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    assert {"max_retries", "max_backoff"} <= inspect.signature(DefaultPolicy).parameters.keys()
    for name in ("set_retry_policies", "close"):
        assert hasattr(SparkConnectClient, name), "internals.connect"
    assert hasattr(ConnectFrame, "_explain_string"), "internals.connect.analysis"
    assert hasattr(ConnectSession, "client")
    assert hasattr(ConnectSession.builder, "create"), "internals.connect.opened"


def test_sequences_of_scala_are_read_by_their_size(spark: SparkSession) -> None:
    known = classes_in(spark._jvm)
    assert list(items(known.sequence([1, 2]))) == [1, 2], "internals.jvm.items"


def test_a_parsed_plan_tells_all_that_stands_in_it_at_once(catalyst: Catalyst) -> None:
    why = "internals.catalyst.outline_of"
    sql = """SELECT upper(a.b) AS c, CASE WHEN x > 1 THEN DATE '2020-01-01' END AS d
        FROM one AS a LEFT JOIN two.three ON f(y) > 0 WHERE a.b IN (1, g(z))
        UNION ALL SELECT count(h(u)), max(v) FROM w GROUP BY i(u)"""
    plan = catalyst.parse(sql)
    outline = catalyst.outline_of(plan)
    assert outline is not None, why
    found = {each.words for each in outline if each.name == "UnresolvedFunction"}
    assert found == {"upper", "f", "g", "count", "h", "max", "i"}, why
    relations = [each for each in outline if each.name == "UnresolvedRelation"]
    assert [(each.words, each.is_streaming) for each in relations] == [
        ("one", False),
        ("two, three", False),
        ("w", False),
    ], why
    assert "date" in [each.type for each in outline if each.name == "Literal"], why
    # Branches of CASE are told twice.
    assert {each.name for each in outline} == {each.kind for each in inside(plan)}, why
    kinds = {each.name for each in outline if each.kind is None}
    assert {"Project", "Filter", "Join", "Aggregate", "Union"} <= kinds, why


def test_what_a_parsed_plan_holds_besides_expressions_is_no_outlined_plan(
    catalyst: Catalyst,
) -> None:
    for sql in (
        "WITH x AS (SELECT uuid()) SELECT * FROM x",
        "SELECT sum(a) OVER w FROM b WINDOW w AS (PARTITION BY uuid())",
        "SELECT * FROM b PIVOT (sum(a) FOR c IN (uuid()))",
        "SELECT * FROM VALUES (uuid()) AS t(a)",
        "SELECT * FROM range(uuid())",
        "SELECT * FROM b LATERAL VIEW explode(uuid()) t AS y",
        "SELECT a FROM b HAVING uuid() > 1",
    ):
        outline = catalyst.outline_of(catalyst.parse(sql))
        known = {"UnresolvedFunction", "UnresolvedAttribute", "UnresolvedStar", "Literal", "Alias"}
        told = outline is not None and all(
            each.name in OUTLINED or each.name in known for each in outline
        )
        seen = outline is not None and "uuid" in [each.words for each in outline]
        assert seen or not told, f"{sql}: internals.catalyst.OUTLINED"
