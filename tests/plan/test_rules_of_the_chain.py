"""Rules of the chain, each broken by a definition: refused when planned and when appended."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from odfbuild.errors import ChainError, Errors
from odfbuild.odf import normalise
from odfbuild.odf.chain import data_rules, rule_errors, rules
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.rules import check
from odfbuild.odf.chain.state import ChainState
from odfbuild.odf.model import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DisablePollingSource,
    DisablePushSource,
    FetchStepEthereumLogs,
    MergeStrategyAppend,
    MetadataBlock,
    MetadataEvent,
    ReadStepNdJson,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.plan.model import Action
from odfbuild.project.load import load_project
from tests.plan.worlds import World, committed_form, polling, transform

PUSH = AddPushSource(source_name="default", read=ReadStepNdJson(), merge=MergeStrategyAppend())
ETHEREUM = replace(polling(), fetch=FetchStepEthereumLogs(filter="address = X'00'"))
TWO_SCHEMAS = replace(
    polling(), read=ReadStepNdJson(ddl_schema=("a INT",), schema=DataSchema(fields=()))
)


def sql(**fields: object) -> TransformSql:
    return TransformSql(engine="spark", **fields)  # type: ignore[arg-type]


def preprocessed(**fields: object) -> SetPollingSource:
    return replace(polling(), preprocess=sql(**fields))


def query(text: str = "SELECT 1", alias: str | None = None) -> SqlQueryStep:
    return SqlQueryStep(query=text, alias=alias)


def schema(*columns: tuple[str, object]) -> SetDataSchema:
    fields = tuple(DataField(name=name, type=kind) for name, kind in columns)  # type: ignore[arg-type]
    return SetDataSchema(schema=DataSchema(fields=fields))


INT = DataTypeInt64()
COMMITTED = schema(("a", INT))

DEFINED: dict[str, tuple[DatasetKind, MetadataEvent, str]] = {
    "nowhere to ask for logs": (DatasetKind.Root, ETHEREUM, "E0644"),
    "two schemas": (DatasetKind.Root, TWO_SCHEMAS, "E0645"),
    "query and queries": (
        DatasetKind.Root,
        preprocessed(query="SELECT 1", queries=(query(),)),
        "E0640",
    ),
    "no query": (DatasetKind.Root, preprocessed(queries=()), "E0641"),
    "alias of the result": (DatasetKind.Root, preprocessed(queries=(query(alias="a"),)), "E0642"),
    "step without alias": (DatasetKind.Root, preprocessed(queries=(query(), query())), "E0643"),
    "no inputs": (DatasetKind.Derivative, replace(transform("a"), inputs=()), "E0651"),
    "input twice": (
        DatasetKind.Derivative,
        replace(transform("a"), inputs=transform("a").inputs * 2),
        "E0654",
    ),
}


@pytest.mark.parametrize("name", DEFINED)
def test_what_a_chain_would_refuse_is_refused_when_it_is_planned(name: str) -> None:
    kind, event, code = DEFINED[name]
    world = World().root("a").define("d", kind, event)
    planned = world.planned("d")
    assert planned.refusal is not None
    assert planned.refusal.code == code
    assert planned.actions == (Action.REFUSE,)


@pytest.mark.parametrize("name", DEFINED)
def test_what_a_plan_refuses_is_refused_when_it_is_appended(name: str) -> None:
    _, event, code = DEFINED[name]
    assert refused(World().root("a").commit("a").now, committed_form(event)) == code


RESOLVED = committed_form(transform("a"))
assert isinstance(RESOLVED, SetTransform)
NAMELESS = replace(RESOLVED, inputs=(replace(RESOLVED.inputs[0], alias=None),))

CHANGED: dict[str, tuple[tuple[MetadataEvent, ...], MetadataEvent, str]] = {
    "polling beside pushing": ((PUSH,), polling(), "E0646"),
    "pushing beside polling": ((polling(),), PUSH, "E0647"),
    "the same push source": ((PUSH,), PUSH, "E0648"),
    "nothing to disable": ((), DisablePollingSource(), "E0649"),
    "no such push source": ((PUSH,), DisablePushSource(source_name="other"), "E0650"),
    "an input without DID": ((), transform("a"), "E0652"),
    "an input without alias": ((), NAMELESS, "E0653"),
    "the same schema": ((COMMITTED,), COMMITTED, "E0655"),
    "a column that goes": ((COMMITTED,), schema(), "E0656"),
    "a required new column": ((COMMITTED,), schema(("a", INT), ("b", INT)), "E0656"),
    "another type": ((COMMITTED,), schema(("a", DataTypeString())), "E0656"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_a_chain_says_already_limits_what_may_follow(name: str) -> None:
    events, event, code = CHANGED[name]
    world = World().define("r", DatasetKind.Root, *events)
    assert refused(world.commit("r").now, event) == code


def test_a_new_optional_column_may_follow() -> None:
    state = World().root("r", COMMITTED).commit("r").now
    append(state, schema(("a", INT), ("b", DataTypeOption(inner=INT))))


def append(now: Projection, event: MetadataEvent) -> None:
    state = ChainState(
        head=now.head,
        sequence_number=now.blocks - 1,
        system_time=now.system_time,
        schema=now.schema,
        polling=now.polling_source is not None,
        push_sources=now.push_sources,
    )
    block = MetadataBlock(
        system_time=now.system_time,
        prev_block_hash=now.head,
        sequence_number=now.blocks,
        event=event,
    )
    check(state, block)


def refused(state: Projection, event: MetadataEvent) -> str:
    with pytest.raises(ChainError) as caught:
        append(state, event)
    return caught.value.code


def test_a_defined_schema_that_breaks_the_committed_one_is_refused_when_planned() -> None:
    world = World().root("r", COMMITTED)
    world.commit("r")
    world.root("r", schema(("a", DataTypeString())))
    refusal = world.planned("r").refusal
    assert refusal is not None
    assert refusal.code == "E0656"
    assert any("'a'" in note for note in refusal.notes)


@pytest.mark.parametrize("before, after", [(PUSH, polling()), (polling(), PUSH)])
def test_a_source_makes_room_for_one_of_the_other_kind(
    before: MetadataEvent, after: MetadataEvent
) -> None:
    world = World().root("r", before)
    world.commit("r")
    world.root("r", after)
    disabled = (
        DisablePollingSource()
        if isinstance(before, SetPollingSource)
        else DisablePushSource(source_name="default")
    )
    assert [change.after for change in world.planned("r").changes] == [disabled, after]


def test_a_source_can_come_back_after_it_was_removed() -> None:
    world = World().root("r")
    chain = world.commit("r").add(3)
    chain.append(DisablePollingSource())
    planned = world.planned("r")
    assert [change.after for change in planned.changes] == [polling()]
    assert Action.POLL in planned.actions


def test_a_dataset_without_a_source_is_not_polled() -> None:
    world = World().root("r", SetInfo(description="once"), polling())
    world.commit("r").add(3)
    world.root("r", SetInfo(description="once"))
    planned = world.planned("r")
    assert planned.actions == (Action.APPEND,)
    assert planned.pending is None


# --- In files: the place of the error ---

_PROJECT = "kind: Project\nversion: 1\ncontent:\n  name: p\n  datasets: datasets\n  state: chains\n"
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: r
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: EthereumLogs, filter: "address = X'00'"}
      read:
        kind: Parquet
        ddlSchema: [a INT]
        schema: {fields: []}
      preprocess: {kind: Sql, engine: spark, queries: [{query: SELECT 1}, {query: SELECT 2}]}
      merge: {kind: Append}
"""


def test_every_broken_rule_of_a_definition_has_its_code_and_its_place(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "odfbuild.yaml").write_text(_PROJECT)
    (tmp_path / "datasets" / "r.yaml").write_text(_ROOT)
    with pytest.raises(Errors) as caught:
        load_project(tmp_path)
    found = [
        (e.code, e.location.line, e.location.column) for e in caught.value.errors if e.location
    ]
    assert found == [("E0644", 8, 7), ("E0645", 11, 9), ("E0643", 13, 56)]


def codes_in(*modules: ModuleType) -> list[str]:
    texts = [Path(str(module.__file__)).read_text() for module in modules]
    return [code for text in texts for code in re.findall(r'"(E06\d\d)"', text)]


@pytest.mark.parametrize("modules", [(rules, data_rules), (normalise,)])
def test_no_two_rules_share_a_code(modules: tuple[ModuleType, ...]) -> None:
    codes = codes_in(*modules)
    assert {c for c in codes if codes.count(c) > 1} <= {"E0603", "E0604"}


def test_every_rule_is_listed_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/chain-rules.md").read_text()
    listed = dict(re.findall(r"^\| (E06\d\d) \| (\w+) ", page, re.M))
    assert set(listed) == set(codes_in(rules, data_rules))
    assert listed == {code: rule_errors.name_of(code) for code in listed}
