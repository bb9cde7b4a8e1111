"""What was found right is trusted for the same query over the same columns, and for nothing else.

Each test has a verdict remembered, changes one thing that it follows from, and asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.apply.queries import _key
from odfbuild.engine.contract import InputSlices
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.plan.queries.changed import ChangedQueries
from odfbuild.sql.check import check
from odfbuild.survey import decision_cache
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

EXTRA = "SELECT event_time, id, extra FROM source"


TWO_SOURCES = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: till
      read: {kind: Csv, header: true, schema: [event_time TIMESTAMP, id BIGINT]}
      preprocess: {kind: Sql, engine: spark, query: SELECT nothing FROM input}
      merge: {kind: Append}
    - kind: AddPushSource
      sourceName: desk
      read: {kind: Csv, header: true, schema: [event_time TIMESTAMP, id BIGINT]}
      preprocess:
        kind: Sql
        engine: spark
        query: SELECT id FROM input
      merge: {kind: Append}
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    share(PlainEngine(), monkeypatch)
    return Tiny.fresh(tmp_path / "p")


def swap(tiny: Tiny, file: str, old: str, new: str) -> None:
    path = tiny.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def told(odfbuild: Program, *command: str) -> str:
    said = odfbuild(*command)
    assert "Traceback" not in said.err
    return said.out + said.err


def give_extra(tiny: Tiny) -> None:
    swap(tiny, "datasets/root.yaml", "- value BIGINT", "- value BIGINT\n          - extra BIGINT")


def take_extra(tiny: Tiny) -> None:
    swap(tiny, "datasets/root.yaml", "- value BIGINT\n          - extra BIGINT", "- value BIGINT")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many queries were looked at since the last time."""
    found: list[object] = []
    original = check.errors_of

    def counted(*arguments: object, **options: object) -> object:
        found.append(arguments)
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "errors_of", counted)

    def count() -> int:
        number = len(found)
        found.clear()
        return number

    return count


def test_a_right_query_is_looked_at_once(
    tiny: Tiny, odfbuild: Program, looks: Callable[[], int]
) -> None:
    for verb in ("validate", "plan"):
        odfbuild.ok(verb)
        assert looks() == 1
        odfbuild.ok(verb)
        assert looks() == 0


def test_another_version_of_odfbuild_looks_again(
    tiny: Tiny, odfbuild: Program, looks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.ok("validate")
    looks()
    monkeypatch.setattr(decision_cache, "code_stamp", lambda: b"another version")
    odfbuild.ok("validate")
    assert looks() == 1


@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_other_columns_of_an_input(tiny: Tiny, odfbuild: Program, verb: str) -> None:
    tiny.derive("derived", EXTRA)
    give_extra(tiny)
    odfbuild.ok(verb)
    take_extra(tiny)
    assert "no input has a column 'extra'" in told(odfbuild, verb)


@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_other_columns_of_the_input_of_an_input(tiny: Tiny, odfbuild: Program, verb: str) -> None:
    tiny.derive("derived", "SELECT * EXCEPT (offset, op, system_time) FROM source")
    tiny.derive("further", EXTRA, source="derived")
    give_extra(tiny)
    odfbuild.ok(verb)
    take_extra(tiny)
    assert "no input has a column 'extra'" in told(odfbuild, verb)


@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_other_columns_of_an_input_by_its_identity(
    tiny: Tiny, odfbuild: Program, verb: str
) -> None:
    odfbuild.apply()
    identity = tiny.workspace().projections()["root"].dataset_id
    tiny.derive("further", EXTRA, source=str(identity))
    assert "no input has a column 'extra'" in told(odfbuild, verb)
    give_extra(tiny)
    odfbuild.ok(verb)
    take_extra(tiny)
    assert "no input has a column 'extra'" in told(odfbuild, verb)


def test_what_a_plan_leaves_out_does_not_bring_its_columns(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    give_extra(tiny)
    tiny.derive("further", EXTRA)
    odfbuild.ok("plan")
    assert "no input has a column 'extra'" in told(odfbuild, "plan", "-s", "further")
    odfbuild.ok("plan", "-s", "further", "-s", "root")


def test_what_a_plan_found_right_is_less_than_what_validate_asks(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.root / "datasets" / "root.yaml").write_text(TWO_SOURCES)
    with monkeypatch.context() as earlier:  # a release that did not look at queries committed it
        earlier.setattr(ChangedQueries, "refused", lambda *_: ())
        odfbuild("apply", "-y")
    assert "root" in tiny.workspace().aliases()
    swap(tiny, "datasets/root.yaml", "query: SELECT id", "query: SELECT id + 1 AS id")
    told(odfbuild, "plan")
    assert "no input has a column 'nothing'" in told(odfbuild, "validate")


@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_an_engine_that_nothing_stands_in_for_any_more(
    tiny: Tiny, odfbuild: Program, verb: str
) -> None:
    swap(tiny, "datasets/derived.yaml", "engine: spark", "engine: datafusion")
    swap(tiny, "odfbuild.yaml", "  name: tiny", "  name: tiny\n  engines: {datafusion: spark}")
    odfbuild.ok(verb)
    swap(tiny, "odfbuild.yaml", "  engines: {datafusion: spark}\n", "")
    assert "error[E0513]" in told(odfbuild, verb)


@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_other_values_of_the_variables_of_a_template(
    tiny: Tiny, odfbuild: Program, verb: str
) -> None:
    derived = tiny.root / "datasets" / "derived.yaml"
    swap(tiny, "odfbuild.yaml", "  name: tiny", "  name: tiny\n  vars: {column: id}")
    text = derived.read_text().replace(QUERY, "SELECT event_time, {{ column }} FROM source")
    derived.with_name("derived.yaml.j2").write_text(text)
    derived.unlink()
    odfbuild.ok(verb)
    assert "no input has a column 'nothing'" in told(odfbuild, "--var", "column=nothing", verb)


def test_verdicts_of_the_engine_tell_schemas_apart_that_print_alike() -> None:
    one = pa.schema([("a: int64\nb", pa.int64())])
    two = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert one.to_string() == two.to_string()
    query = TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT a FROM source"),))
    keys = {
        _key(
            query,
            [InputSlices(alias="source", schema=schema, vocab=Vocabulary())],
            Vocabulary(),
            preprocess,
        )
        for schema in (one, two)
        for preprocess in (True, False)
    }
    assert len(keys) == 4
