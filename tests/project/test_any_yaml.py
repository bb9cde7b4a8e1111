"""Any text is read as YAML 1.2 or refused with its place: no crash, no hang, no other meaning."""

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import Errors, ProjectError
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.load import load_project
from odfbuild.project.yaml.source import read_documents
from tests.project.write_project import root_yaml, write_project

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_canonical_text_is_read_back(data: Any) -> None:
    assert read_documents(dump_yaml(data), "a.yaml") == [data]


@given(st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@`#~ \n\t0.1\\\u2028\x85\ufeff"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_documents(text, "a.yaml")
    except ProjectError as error:
        assert error.location is not None
        assert error.location.file == "a.yaml"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("1.5e3", 1500.0),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("<<", "<<"),
        ("=", "="),
        ("'12'", "12"),
        ("!!str 12", "12"),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(written: str, meant: Any) -> None:
    (found,) = read_documents(f"a: {written}", "a.yaml")
    assert found == {"a": meant}
    assert type(found["a"]) is type(meant)


BOMBS = {
    "nested lists": "a: " + 5_000 * "[",
    "nested lists that close": "a: " + 5_000 * "[" + 5_000 * "]",
    "nested objects": "".join(f"{' ' * n}a:\n" for n in range(1_000)),
    "aliases of aliases": "a0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)),
    "an alias of itself": "a: &a [*a]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_time_and_memory(name: str, tmp_path: Path) -> None:
    text = root_yaml("cities") + BOMBS[name]
    root = write_project(tmp_path / "project", {"cities.yaml": text})
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(Errors) as caught:
            load_project(root)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 30
    assert [error.code for error in caught.value.errors] == ["E0101"]


@settings(max_examples=200)
@given(st.data())
def test_a_definition_with_any_character_changed_is_read_or_refused(data: Any) -> None:
    text = root_yaml("cities")
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.sampled_from("\t :-[{&*!'\"\n#\x00a")) + text[at + 1 :]
    try:
        read_documents(text, "a.yaml")
    except ProjectError as error:
        assert error.location is not None


def test_a_configuration_of_two_documents_is_not_read_in_half(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project", {})
    config = root / "odfbuild.yaml"
    config.write_text(config.read_text() + "---\n")
    assert load_project(root).definitions == ()
    config.write_text(config.read_text() + "---\nkind: Project\n")
    with pytest.raises(Errors) as caught:
        load_project(root)
    (error,) = caught.value.errors
    assert "more than one document" in error.message
    assert error.location is not None
    assert error.location.line == 9
