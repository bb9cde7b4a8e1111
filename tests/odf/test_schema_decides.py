"""The schemas accept and refuse definitions; the decoder takes what they take, and nothing else."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from odfbuild.errors import ProjectError
from odfbuild.odf import json_schema
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.formats import FORMATS
from odfbuild.odf.json_schema import manifest_schema
from odfbuild.odf.model import DatasetSnapshot, MetadataBlock
from odfbuild.odf.schema_errors import RULES, errors_of, validator_of
from odfbuild.odf.yaml_form import _SCALARS, _Misfit, from_manifest, to_manifest
from odfbuild.project.yaml.source import read_documents
from tests.odf.test_generated_schemas import BAD, GOOD
from tests.odf.values import objects as values
from tests.project.test_wrong_definitions import WRONG

ROOT = Path(__file__).parents[2]
PLAIN = {
    kind: Draft202012Validator(manifest_schema(kind))
    for kind in ("DatasetSnapshot", "MetadataBlock")
}
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2.0, 10**30, float("nan"), "", "x", "csv", "Csv", "struct", "int32"),
    *("2024-01-01T00:00:00Z", "a b", "a.b", "did:odf:x", "AAAA", [], ["x"], [1], [None], [[]], {}),
    *({"kind": "Csv"}, {"kind": None}, {"kind": 5}, {"x": float("inf")}, {"kind": "Struct"}),
)
KEYS = ("kind", "schema", "ddlSchema", "extra", "separator", "x", 1)


def texts() -> Iterator[tuple[str, str]]:
    """Files of the example, of projects of tests, and of wrong definitions."""
    for folder in ("example_project", "tests/projects", "tests/project/old_form"):
        for file in sorted((ROOT / folder).rglob("*.y*ml")):
            yield str(file.relative_to(ROOT)), file.read_text()
    for name, files in WRONG.items():
        yield from ((f"{name}/{file}", text) for file, text in files.items())


def documents() -> list[Any]:
    found = [*GOOD, *BAD]
    for name, text in texts():
        try:
            found += read_documents(text, name)
        except ProjectError:
            continue  # no YAML
    return [each for each in found if each is not None]


DOCUMENTS = documents()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner: Any = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else inner:
        yield from places(each, (*path, key))


def mutated(data: Any, choose: random.Random) -> Any:
    """Data with one to three of its values put, taken away, renamed or added to."""
    data = copy.deepcopy(data)
    for _ in range(choose.choice((1, 1, 2, 3))):
        path = choose.choice(list(places(data)))
        if not path:
            continue
        at, last = data, path[-1]
        for key in path[:-1]:
            at = at[key]
        odd = copy.deepcopy(choose.choice(ODD))
        match choose.choice(("put", "put", "remove", "rename", "add")):
            case "remove":
                del at[last]
            case "rename" if isinstance(at, dict):
                at[f"{last}x"] = at.pop(last)
            case "add" if isinstance(at[last], dict):
                at[last][choose.choice(KEYS)] = odd
            case _:
                at[last] = odd
    return data


def check(kind: str, data: Any) -> bool:
    """Decoder and schema agree; what else than keywords refuses is one of the rules."""
    schema = manifest_schema(kind)
    found = errors_of(schema, data)
    try:
        from_manifest(kind, data)
    except DecodeErrors as error:
        assert error.errors == tuple(found) != ()
    else:
        assert found == []
        assert PLAIN[kind].is_valid(data)
        return True
    if PLAIN[kind].is_valid(data):
        by = {_rule(each) for each in _leaves(validator_of(schema).iter_errors(data))}
        assert by - {None}, data
        assert by - {None} <= RULES.keys()
    return False


def _leaves(errors: Any) -> Iterator[Any]:
    for each in errors:
        yield each
        yield from _leaves(each.context)


def _rule(error: Any) -> str | None:
    if error.validator == "format":
        return str(error.validator_value)
    is_fraction = error.validator_value == "integer" and isinstance(error.instance, float)
    return "integer" if error.validator == "type" and is_fraction else None


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_decoder_and_schema_agree_on_every_definition_of_examples_and_tests(number: int) -> None:
    check("DatasetSnapshot", DOCUMENTS[number])


def test_decoder_and_schema_agree_on_changed_definitions() -> None:
    choose = random.Random(11)
    known = [each for each in DOCUMENTS if isinstance(each, dict)]
    right = sum(check("DatasetSnapshot", mutated(choose.choice(known), choose)) for _ in range(400))
    assert 10 < right < 390


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_decoder_and_schema_agree_on_any_object_changed_in_any_way(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from((DatasetSnapshot, MetadataBlock)))
    whole = to_manifest(data.draw(values(cls)))
    assert check(cls.__name__, whole)
    check(cls.__name__, mutated(whole, data.draw(st.randoms(use_true_random=False))))


def test_every_rule_beyond_keywords_is_named_and_documented() -> None:
    assert RULES.keys() == {"integer", *(each.name for each in FORMATS.values())}
    text = (ROOT / "schemas" / "README.md").read_text()
    assert [name for name in RULES if f"| `{name}` |" not in text] == []


def test_a_number_with_a_fraction_of_zero_is_refused_by_its_rule() -> None:
    source = copy.deepcopy(GOOD[2])
    source["content"]["metadata"][0]["read"] = {"kind": "EsriShapefile"}
    source["content"]["metadata"][0] = {
        "kind": "SetPollingSource",
        **{key: source["content"]["metadata"][0][key] for key in ("read", "merge")},
        "fetch": {"kind": "Mqtt", "host": "h", "port": 1883.0, "topics": []},
    }
    assert PLAIN["DatasetSnapshot"].is_valid(source)
    with pytest.raises(DecodeErrors, match=r"expected a whole number, found the number 1883\.0"):
        from_manifest("DatasetSnapshot", source)
    assert not check("DatasetSnapshot", source)


@pytest.mark.parametrize(("depth", "said"), [(60, "the string 'int65'"), (900, "nested deeper")])
def test_types_within_types_are_refused_however_deep(depth: int, said: str) -> None:
    kind: Any = "int65"
    for _ in range(depth):
        kind = {"kind": "List", "itemType": kind}
    fields = [{"name": "x", "type": kind}]
    data = copy.deepcopy(GOOD[0])
    data["content"]["metadata"] = [{"kind": "SetDataSchema", "schema": {"fields": fields}}]
    with pytest.raises(DecodeErrors, match=said):
        from_manifest("DatasetSnapshot", data)


@pytest.mark.parametrize(
    ("bits", "signed"), [(16, True), (32, True), (32, False), (64, False)], ids=str
)
def test_an_integer_is_taken_up_to_its_bounds_and_no_further(bits: int, signed: bool) -> None:
    decode = _SCALARS[f"{'i' if signed else 'u'}{bits}"]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    assert (decode(low), decode(high)) == (low, high)
    for wrong in (low - 1, high + 1):
        with pytest.raises(_Misfit):
            decode(wrong)


@pytest.mark.parametrize(
    ("wire", "low", "high"),
    [
        ("u64", 0, 2**64 - 1),
        ("u32", 0, 2**32 - 1),
        ("i32", -(2**31), 2**31 - 1),
        ("i16", -(2**15), 2**15 - 1),
    ],
)
def test_integers_end_where_their_wire_type_ends(wire: str, low: int, high: int) -> None:
    validator = Draft202012Validator(json_schema._SCALARS[wire])
    for number in (low, low + 1, high - 1, high):
        assert validator.is_valid(number)
        assert _SCALARS[wire](number) == number
    for number in (low - 1, high + 1):
        assert not validator.is_valid(number)
        with pytest.raises(_Misfit):
            _SCALARS[wire](number)
