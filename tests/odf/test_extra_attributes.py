"""The text of `extra` attributes, which is part of the hash of a block."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.extra_attributes import extra_from_json, extra_to_json
from odfbuild.odf.model import SetDataSchema
from odfbuild.odf.yaml_form import from_data
from tests.odf.values import JSON


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (-0.0000125, "-0.0000125"),
        (0.000009, "9e-6"),
        (1e-6, "1e-6"),
        (-1.5e-7, "-1.5e-7"),
        (5e-324, "5e-324"),
        (123456789012345.6, "123456789012345.6"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.25e300, "1.25e+300"),
    ],
)
def test_numbers_are_spelled_as_the_reference_spells_them(number: float, text: str) -> None:
    assert extra_to_json({"x": number}) == f'{{"x":{text}}}'


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON))
def test_attributes_are_read_back_from_their_text(value: dict[str, Any]) -> None:
    text = extra_to_json(value)
    assert extra_from_json(text) == value
    assert extra_to_json(extra_from_json(text)) == text


def test_keys_are_sorted_by_code_points_at_every_level() -> None:
    value = {"é": 1, "b": {"𐀀": [], "￿": {}}, "a/b": "\x7f\x00\n"}
    assert extra_to_json(value) == '{"a/b":"\x7f\\u0000\\n","b":{"￿":{},"𐀀":[]},"é":1}'


@pytest.mark.parametrize(
    "text", ["[]", "1", "{", '{"a":NaN}', '{"a":-Infinity}', '{"a":"\\ud800"}', '{"a":1e999}']
)
def test_a_text_that_is_no_map_of_attributes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        extra_from_json(text)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "not a number"),
        (2**64, "64 bits"),
        ({1: "x"}, "the key 1 is not text"),
        ({None: "x"}, "the key None is not text"),
        (json.loads("[" * 70 + "]" * 70), "nested"),
    ],
)
def test_a_definition_with_attributes_that_have_no_json_is_refused(value: Any, why: str) -> None:
    data = {"kind": "SetDataSchema", "schema": {"fields": [], "extra": {"a": [value]}}}
    with pytest.raises(DecodeErrors, match=why):
        from_data(SetDataSchema, data)
