import time

import pytest

from odfbuild.odf.model import DatasetSnapshot, SetTransform
from odfbuild.odf.normalise import SnapshotErrors, normalise_snapshot
from odfbuild.odf.yaml_form import from_data

DID = "did:odf:fed01df230b49615d175307d580c33d6fda61fc7b9aec91df0f5c1a5ebe3b8cbfee02"


def snapshot(kind: str, *events: dict) -> DatasetSnapshot:
    return from_data(DatasetSnapshot, {"name": "x", "kind": kind, "metadata": list(events)})


def transform(sql: dict, *inputs: dict) -> dict:
    return {
        "kind": "SetTransform",
        "inputs": list(inputs) or [{"datasetRef": "a"}],
        "transform": {"kind": "Sql", "engine": "spark", **sql},
    }


def problems(kind: str, *events: dict) -> list[tuple]:
    with pytest.raises(SnapshotErrors) as caught:
        normalise_snapshot(snapshot(kind, *events))
    assert all(problem.message and problem.help for problem in caught.value.problems)
    return [problem.path for problem in caught.value.problems]


def test_a_single_query_becomes_the_only_step() -> None:
    event = transform({"query": "select 1"}, {"datasetRef": "a"}, {"datasetRef": DID})
    result = normalise_snapshot(snapshot("Derivative", event)).metadata[0]
    assert isinstance(result, SetTransform)
    assert result.transform.query is None
    assert [(s.alias, s.query) for s in result.transform.queries or ()] == [(None, "select 1")]
    assert [each.alias for each in result.inputs] == ["a", DID]


def test_preprocess_is_normalised_for_polling_and_push() -> None:
    source = {
        "read": {"kind": "NdJson"},
        "preprocess": {"kind": "Sql", "engine": "spark", "query": "select 1"},
        "merge": {"kind": "Append"},
    }
    polling = {"kind": "SetPollingSource", "fetch": {"kind": "Url", "url": "file:///x"}, **source}
    push = {"kind": "AddPushSource", "sourceName": "default", **source}
    for event in normalise_snapshot(snapshot("Root", polling, push)).metadata:
        assert event.preprocess.query is None
        assert event.preprocess.queries[0].query == "select 1"


def test_what_is_normal_already_is_returned_as_it_is() -> None:
    event = transform({"queries": [{"query": "select 1"}]}, {"datasetRef": "a", "alias": "b"})
    before = snapshot("Derivative", event, {"kind": "SetInfo"})
    assert normalise_snapshot(before) is before


def test_all_problems_come_at_once_with_their_paths() -> None:
    assert problems(
        "Derivative",
        {"kind": "Seed", "datasetId": DID, "datasetKind": "Root"},
        transform({"query": "a", "queries": [{"query": "b"}]}),
        transform({}),
        transform({"queries": [{"query": "a"}, {"query": "b", "alias": "c"}]}),
        transform({"query": "a"}, {"datasetRef": "a"}, {"datasetRef": "A"}),
        {"kind": "DisablePollingSource"},
    ) == [
        ("metadata", 0, "kind"),
        ("metadata", 1, "transform", "query"),
        ("metadata", 2, "transform"),
        ("metadata", 3, "transform", "queries", 1, "alias"),
        ("metadata", 3, "transform", "queries", 0),
        ("metadata", 4, "inputs", 1, "datasetRef"),
        ("metadata", 5, "kind"),
    ]


def test_events_must_suit_the_kind_of_the_dataset() -> None:
    push = {
        "kind": "AddPushSource",
        "sourceName": "default",
        "read": {"kind": "NdJson"},
        "merge": {"kind": "Append"},
    }
    assert problems("Derivative", push) == [("metadata", 0, "kind")]
    assert problems("Root", push, transform({"query": "a"})) == [("metadata", 1, "kind")]


def test_ten_thousand_definitions_take_a_moment() -> None:
    before = snapshot("Derivative", transform({"query": "select 1"}))
    start = time.process_time()
    for _ in range(10_000):
        normalise_snapshot(before)
    assert time.process_time() - start < 10
