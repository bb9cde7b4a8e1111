"""Changed queries and sources, judged by what they do to columns, before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    ReadStepCsv,
    SetDataSchema,
    SetPollingSource,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.schema.ddl import parse_ddl
from odfbuild.plan.model import Action, ColumnEffect, DatasetPlan
from tests.plan.worlds import World, pipeline, polling

QUERY = "SELECT event_time, id, name FROM flights"


def source(*columns: str, query: str | None = None, **fields: object) -> SetPollingSource:
    read = ReadStepCsv(header=True, ddl_schema=columns)
    preprocess = None
    if query is not None:
        preprocess = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))
    return replace(polling(), read=read, preprocess=preprocess, **fields)  # type: ignore[arg-type]


def root(*columns: str, query: str | None = None) -> DatasetPlan:
    return planned("flights", pipeline().root("flights", source(*columns, query=query)))


def late(query: str, world: World | None = None) -> DatasetPlan:
    return planned("late", (world or pipeline()).derivative("late", "flights", query=query))


def planned(name: str, world: World) -> DatasetPlan:
    return world.planned(name)


def refused(plan: DatasetPlan) -> tuple[str, ...]:
    assert plan.actions == (Action.REFUSE,)
    assert plan.refusal is not None
    assert plan.refusal.code == "E0314"
    assert plan.refusal.help
    assert f"'{plan.name}.v2'" in plan.refusal.help
    return plan.refusal.notes


# --- Sources ---


def test_a_new_column_of_a_source_is_added() -> None:
    effect = root("id BIGINT", "name STRING", "gate STRING").columns
    assert effect == ColumnEffect(added=("gate",))


@pytest.mark.parametrize(
    "columns, note",
    [
        (("id BIGINT",), "column 'name' is missing"),
        (("id STRING", "name STRING"), "column 'id' is STRING now, and BIGINT"),
        (("id BIGINT", "title STRING"), "column 'name' is missing"),
        (("name STRING", "id BIGINT"), "the columns stand in another order"),
        (("id BIGINT", "name STRING", "gate INT NOT NULL"), "column 'gate' is new and required"),
        (("id BIGINT", "Name STRING"), "column 'name' is missing"),
    ],
)
def test_any_other_change_of_its_columns_is_refused(columns: tuple[str, ...], note: str) -> None:
    assert any(each.startswith(note) for each in refused(root(*columns)))


def test_optional_columns_may_become_required_and_not_the_other_way_round() -> None:
    assert root("id BIGINT NOT NULL", "name STRING").refusal is None
    world = World().root("r")
    chain = world.commit("r")
    fields = tuple(
        DataField(name=n, type=t)
        for n, t in [("event_time", DataTypeInt64()), ("id", DataTypeInt64())]
    )
    chain.append(SetDataSchema(schema=DataSchema(fields=fields)))
    world.root("r", source("id BIGINT"))
    assert any("'id' may hold nulls" in note for note in refused(world.planned("r")))


def test_the_same_columns_in_the_form_of_the_specification_are_no_change_of_columns() -> None:
    optional = DataTypeOption(inner=DataTypeInt64())
    schema = DataSchema(
        fields=(
            DataField(name="id", type=optional),
            DataField(name="name", type=DataTypeOption(inner=DataTypeString())),
        )
    )
    event = replace(polling(), read=ReadStepCsv(header=True, schema=schema))
    assert planned("flights", pipeline().root("flights", event)).columns == ColumnEffect()


def test_columns_of_a_query_over_the_source_count() -> None:
    effect = root("k BIGINT", query="SELECT k AS id, 'x' AS name, k AS gate FROM input").columns
    assert effect == ColumnEffect(added=("gate",), changed=("id", "name"), records=True)
    assert refused(root("k BIGINT", query="SELECT k AS id FROM input"))


def test_without_declared_columns_only_the_data_tell() -> None:
    event = replace(polling(), read=ReadStepCsv(header=True))
    plan = planned("flights", pipeline().root("flights", event))
    assert plan.columns == ColumnEffect(known=False)
    assert plan.refusal is None


def test_before_the_first_record_everything_may_change() -> None:
    world = World().root("r")
    world.commit("r")
    world.root("r", source("other INT"))
    assert world.planned("r").refusal is None
    assert world.planned("r").columns is None


def test_event_time_is_required_whatever_the_source_says() -> None:
    plan = root("event_time TIMESTAMP", "id BIGINT", "name STRING", "gate STRING")
    assert plan.columns is not None
    assert plan.columns.added == ("gate",)


def of_types(*columns: str) -> World:
    """A root `r` whose committed columns are declared like this."""
    world = World().root("r")
    fields = [
        pa.field("event_time", pa.timestamp("ms", "UTC"), nullable=False),
        *parse_ddl(columns),
    ]
    # Records after the schema, so that it counts.
    world.commit("r").append(SetDataSchema(raw_arrow_schema=to_raw(pa.schema(fields)))).add(3)
    return world


@pytest.mark.parametrize(
    "before, after, help",
    [
        (
            "amount DECIMAL(14, 2)",
            "amount DECIMAL(18, 4)",
            "keep 'amount' as DECIMAL(14, 2) and add a column that is DECIMAL(18, 4), by a query "
            "in `preprocess`: `TRY_CAST(amount AS DECIMAL(14, 2)) AS amount, "
            "amount AS amount_wide`; or give",
        ),
        (
            "`full price` INT",
            "`full price` BIGINT",
            "`TRY_CAST(`full price` AS INT) AS `full price`, `full price` AS `full price_wide``",
        ),
        ("amount BIGINT", "amount INT", "keep these columns as they are and add new ones"),
        ("amount FLOAT", "amount INT", "keep these columns as they are and add new ones"),
        ("old INT", "new INT", "keep 'old' and add 'new' with the same values"),
        ("old INT", "new BIGINT", "keep these columns as they are and add new ones"),
    ],
)
def test_a_wider_type_and_a_new_name_are_told_how_to_stand_beside_the_old_column(
    before: str, after: str, help: str
) -> None:
    world = of_types("id BIGINT", before)
    world.chains["r"].append(source("id BIGINT", before))
    refusal = planned("r", world.root("r", source("id BIGINT", after))).refusal
    assert refusal is not None
    assert refusal.code == "E0314"
    assert help in str(refusal.help)


def test_types_are_told_as_definitions_declare_them() -> None:
    world = of_types("amount DECIMAL(14, 2)", "place STRUCT<x: INT>", "at TIMESTAMP")
    columns = ("amount DECIMAL(18, 4)", "place STRUCT<x: DOUBLE>", "at TIMESTAMP(6)")
    notes = refused(planned("r", world.root("r", source(*columns))))
    assert notes[:3] == (
        "column 'amount' is DECIMAL(18, 4) now, and DECIMAL(14, 2) in the committed schema",
        "column 'place.x' is DOUBLE now, and INT in the committed schema",
        "column 'at' is TIMESTAMP(6) now, and TIMESTAMP in the committed schema",
    )


PLACE = "place STRUCT<street: STRING, spot: STRUCT<x: INT>>"


def test_optional_members_of_structures_are_added_like_columns() -> None:
    grown = "place STRUCT<zip: INT, street: STRING, spot: STRUCT<x: INT, y: INT>>"
    world = of_types("id BIGINT", PLACE)
    world.chains["r"].append(source("id BIGINT", PLACE))
    world.derivative("all", "r", query="SELECT event_time, id, place FROM r")
    world.derivative("ids", "r", query="SELECT event_time, id FROM r")
    for name, columns in (("all", ["id BIGINT", PLACE]), ("ids", ["id BIGINT"])):
        fields = [pa.field("event_time", pa.timestamp("ms", "UTC"), False), *parse_ddl(columns)]
        event = SetDataSchema(raw_arrow_schema=to_raw(pa.schema(fields)))
        world.commit(name).append(event).run(3, world.chains["r"])
    world.root("r", source("id BIGINT", grown))
    effect = ColumnEffect(added=("place.zip", "place.spot.y"))
    assert world.planned("r").columns == effect
    assert world.planned("all").columns == effect
    assert world.planned("ids").columns is None


@pytest.mark.parametrize(
    "grown, note",
    [
        ("place STRUCT<street: STRING>", "column 'place' has members street, committed: "),
        (
            "place STRUCT<zip: INT NOT NULL, street: STRING, spot: STRUCT<x: INT>>",
            "new and required",
        ),
        ("place STRUCT<zip: INT, spot: STRUCT<x: INT>, street: STRING>", "has members"),
        (
            "place STRUCT<zip: INT, street: INT, spot: STRUCT<x: INT>>",
            "'place.street' is INT now",
        ),
        (
            "place STRUCT<street: STRING, spot: STRUCT<x: BIGINT>>",
            "'place.spot.x' is BIGINT",
        ),
    ],
)
def test_other_changes_within_structures_are_refused(grown: str, note: str) -> None:
    world = of_types("id BIGINT", PLACE).root("r", source("id BIGINT", grown))
    assert any(note in each for each in refused(world.planned("r")))


# --- Queries ---


def test_a_new_column_of_a_query_is_added() -> None:
    effect = late(QUERY.replace("name", "name, id * 2 AS twice")).columns
    assert effect == ColumnEffect(added=("twice",), records=True)


@pytest.mark.parametrize(
    "query, note",
    [
        ("SELECT event_time, id FROM flights", "column 'name' is missing"),
        (
            "SELECT event_time, CAST(id AS STRING) AS id, name FROM flights",
            "column 'id' is STRING now, and BIGINT",
        ),
        ("SELECT event_time, name, id FROM flights", "the columns stand in another order"),
        ("SELECT event_time, id, name AS title FROM flights", "column 'name' is missing"),
    ],
)
def test_any_other_change_of_its_result_is_refused(query: str, note: str) -> None:
    assert any(each.startswith(note) for each in refused(late(query)))


def test_a_result_without_event_time_is_told_as_that_and_no_new_name_is_suggested() -> None:
    plan = late("SELECT id FROM flights")
    assert plan.refusal is not None
    assert plan.refusal.code == "E0515"
    assert "'event_time'" in plan.refusal.message
    assert "column 'name' is missing" in plan.refusal.notes
    assert not any(each.startswith("cost") for each in plan.refusal.notes)
    assert ".v2" not in str(plan.refusal.help)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, id, upper(name) FROM flights",
        "SELECT event_time, id, name FROM flights JOIN flights USING (id), * FROM x",
    ],
)
def test_what_only_spark_can_tell_is_left_to_apply(query: str) -> None:
    plan = late(query)
    assert plan.columns == ColumnEffect(known=False)
    assert plan.refusal is None


def test_columns_that_are_computed_differently_are_named() -> None:
    world = pipeline()
    world.derivative("late", "flights", query=QUERY)
    flights = world.chains["flights"]
    world.commit("late").run(20, flights, watermark=2)
    effect = late("SELECT event_time, id, upper(name) AS name FROM flights", world).columns
    assert effect == ColumnEffect(changed=("name",))
    effect = late(QUERY + " WHERE id > 3", world).columns
    assert effect == ColumnEffect(records=True)


def test_readers_of_all_columns_gain_what_their_input_gains() -> None:
    world = pipeline().root("flights", source("id BIGINT", "name STRING", "gate STRING"))
    assert world.planned("late").columns == ColumnEffect(added=("gate",))
    assert world.planned("worst").columns == ColumnEffect(added=("gate",))


def test_readers_of_named_columns_do_not() -> None:
    world = pipeline().derivative("late", "flights", query=QUERY)
    world.commit("late").run(20, world.chains["flights"], watermark=2)
    world.root("flights", source("id BIGINT", "name STRING", "gate STRING"))
    assert world.planned("late").columns is None
    assert world.planned("worst").columns is None


def test_a_new_column_of_an_input_can_be_used_in_the_same_plan() -> None:
    world = pipeline().root("flights", source("id BIGINT", "name STRING", "gate STRING"))
    effect = late(QUERY.replace("name", "name, CAST(gate AS INT) AS gate"), world).columns
    assert effect == ColumnEffect(added=("gate",), records=True)


def test_nothing_is_told_of_what_did_not_change() -> None:
    assert [d.columns for d in pipeline().plan().datasets] == [None, None, None]
