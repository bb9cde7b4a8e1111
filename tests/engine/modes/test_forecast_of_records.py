"""Which records plans say that a step needs, and which ones Spark's plan says it needs.

The step itself goes by Spark's plan, so the text of a query may never promise less.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.changes_of_parts import _plan
from odfbuild.odf.schema.pyarrow_form import from_pyarrow
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.forecast import steps_of
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.kept_totals import kept_totals_of
from odfbuild.sql.increments.one_by_one import additions_of
from odfbuild.sql.increments.plan_inputs import Undivided
from odfbuild.sql.increments.told import Told, columns_of, needed_records
from tests.engine.inputs import sql, task
from tests.engine.modes.test_affected_keys import EVENTS, IN_FULL, IN_PARTS, PEOPLE, Grammar
from tests.engine.modes.test_kept_totals import FOLLOW
from tests.engine.modes.test_one_by_one import ADD_UP, OTHERS
from tests.engine.queries import CHANGELOG
from tests.engine.stepwise import SYSTEM

WRITTEN = [*CHANGELOG, *IN_PARTS, *IN_FULL, *ADD_UP, *OTHERS, *FOLLOW]
SCHEMAS = {
    "events": pa.schema([*SYSTEM, *EVENTS]),
    "people": pa.schema([*SYSTEM, *PEOPLE]),
}

Asked = tuple[Told, tuple[bool, bool], str]
Ask = Callable[[str, tuple[str, ...]], Asked]


@pytest.fixture
def ask(spark_engine: SparkEngine, tmp_path: Path) -> Ask:
    """What the text says; whether Spark's plan adds, and keeps totals; and why it needs all."""

    def asked(query: str, unchanged: tuple[str, ...]) -> Asked:
        inputs = [
            InputSlices(
                alias=alias,
                schema=schema,
                vocab=Vocabulary(),
                first=None if alias in unchanged else 0,
                last=None if alias in unchanged else 0,
            )
            for alias, schema in SCHEMAS.items()
            if alias in query
        ]
        step = task(tmp_path, sql(query), *inputs)
        with spark_engine.request("tests") as spark:
            catalyst = Catalyst(spark)
            query_plan, plan, views = _plan(spark, step)
            added = additions_of(catalyst, plan, views) is not None
            grouped = catalyst.replaced(catalyst.inline(query_plan))
            kept = kept_totals_of(catalyst, grouped, views, catalyst.optimised) is not None
            why = ""
            try:
                parts_of(catalyst, plan, views)
            except Undivided as undivided:
                why = str(undivided)
        columns = {each.alias: columns_of(from_pyarrow(each.schema)) for each in inputs}
        steps = steps_of(sql(query))
        assert steps is not None
        still = tuple(each for each in unchanged if each in columns)
        return needed_records(steps, columns, still), (added, kept), why

    return asked


def differences(said: Told, found: tuple[bool, bool], why: str) -> str:
    """How what was said differs from what is done; empty where it is the same."""
    if not said.sure:
        return "decided at run time"
    told = (said.added, said.kept)
    if (told, bool(said.why)) == (found, bool(why)):
        return ""
    too_much = told <= found and bool(said.why) >= bool(why)
    return f"{'more' if too_much else 'LESS'}: {told=} {found=} {said.why=} {why=}"


@pytest.mark.spark
@pytest.mark.parametrize("unchanged", [(), ("people",)])
def test_plans_say_of_written_queries_what_spark_decides(
    ask: Ask, unchanged: tuple[str, ...]
) -> None:
    other = {query: found for query in WRITTEN if (found := differences(*ask(query, unchanged)))}
    assert not {q: f for q, f in other.items() if f != "decided at run time"}
    assert len(other) < len(WRITTEN) / 10, other


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_plans_say_of_made_up_queries_what_spark_decides(ask: Ask, seed: int) -> None:
    grammar = Grammar(random.Random(seed))
    queries = [query for _ in range(40) if "events" in (query := grammar.query())]
    for unchanged in ((), ("people",)):
        other = {q: found for q in queries if (found := differences(*ask(q, unchanged)))}
        assert not {q: f for q, f in other.items() if f != "decided at run time"}
        assert len(other) < len(queries) / 10, other
