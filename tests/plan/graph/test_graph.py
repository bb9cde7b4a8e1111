"""Definitions form a graph, or say all that keeps them from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from networkx import DiGraph

from odfbuild.errors import Errors
from odfbuild.plan.graph.build import build_graph
from odfbuild.plan.graph.dag import Graph
from odfbuild.project.load import load_project
from odfbuild.survey.decision_cache import KnownOrder
from tests.project.write_project import derived_yaml, root_yaml, write_project


def _graph(root: Path, files: dict[str, str]) -> Graph:
    return build_graph(load_project(write_project(root, files)), {})


def test_inputs_come_first_and_layers_are_alphabetical(tmp_path: Path) -> None:
    graph = _graph(
        tmp_path,
        {
            "1.yaml": derived_yaml("z", "root"),
            "2.yaml": derived_yaml("a", "z"),
            "3.yaml": derived_yaml("b", "root"),
            "4.yaml": root_yaml("root"),
        },
    )
    assert graph.order == ("root", "b", "z", "a")
    assert {name: set(found) for name, found in graph.readers.items() if found} == {
        "root": {"b", "z"},
        "z": {"a"},
    }
    assert {name: found for name, found in graph.inputs.items() if found} == {
        "a": ("z",),
        "b": ("root",),
        "z": ("root",),
    }


def test_names_are_compared_without_case(tmp_path: Path) -> None:
    graph = _graph(tmp_path, {"1.yaml": root_yaml("Root"), "2.yaml": derived_yaml("a", "rOOT")})
    assert graph.inputs["a"] == ("Root",)


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(Errors) as caught:
        _graph(
            tmp_path,
            {
                "1.yaml": derived_yaml("one", "two"),
                "2.yaml": derived_yaml("two", "one"),
                "3.yaml": derived_yaml("lost", "nowhere"),
                "4.yaml": root_yaml("twin"),
                "5.yaml": root_yaml("TWIN"),
            },
        )
    assert sorted(error.code for error in caught.value.errors) == ["E0201", "E0202", "E0203"]
    assert all(error.location and error.location.line for error in caught.value.errors)
    assert all(error.help for error in caught.value.errors)


def test_the_graph_is_one_of_networkx_with_definitions_as_attributes(tmp_path: Path) -> None:
    graph = _graph(tmp_path, {"1.yaml": derived_yaml("a", "root"), "2.yaml": root_yaml("root")})
    assert isinstance(graph.dag, DiGraph)
    assert list(graph.dag.edges) == [("root", "a")]
    assert graph.dag.nodes["a"]["definition"].name == "a"
    assert graph.roots("a") == ["root"]


def test_a_known_order_is_taken_only_for_the_same_inputs(tmp_path: Path) -> None:
    config = load_project(write_project(tmp_path, {"1.yaml": root_yaml("root")})).config
    known = KnownOrder(config)
    known.put({"a": (), "b": ("a",)}, ("a", "b"))
    assert known.get({"a": (), "b": ("a",)}) == ("a", "b")
    assert known.get({"a": ("b",), "b": ()}) is None


def _with_checks(root: Path, files: dict[str, str], *checks: tuple[str, str]) -> Graph:
    write_project(root, files)
    listed = ", ".join(
        f"{{match: [{name}], relationships: {{id: {{to: {to}, field: id}}}}}}"
        for name, to in checks
    )
    with (root / "odfbuild.yaml").open("a") as file:
        file.write(f"  checks: [{listed}]\n")
    return build_graph(load_project(root), {})


def test_a_dataset_comes_after_those_that_its_checks_refer_to(tmp_path: Path) -> None:
    files = {"1.yaml": root_yaml("a"), "2.yaml": root_yaml("z"), "3.yaml": derived_yaml("d", "z")}
    graph = _with_checks(tmp_path, files, ("a", "D"), ("d", "z"), ("z", "z"))
    assert graph.order == ("z", "d", "a")
    assert graph.checks == {"a": ("d",)}
    assert graph.inputs["a"] == ()
    assert list(graph.dag.edges) == [("z", "d")]
    assert graph.waits_for == {"a": ("d",), "z": (), "d": ("z",)}


def test_a_check_that_refers_to_what_waits_for_it_is_an_error_with_its_place(
    tmp_path: Path,
) -> None:
    files = {"1.yaml": root_yaml("a"), "2.yaml": derived_yaml("b", "a"), "3.yaml": root_yaml("c")}
    with pytest.raises(Errors) as caught:
        _with_checks(tmp_path, files, ("a", "b"), ("b", "c"))
    (error,) = caught.value.errors
    assert error.code == "E0204"
    assert error.dataset == "a"
    assert error.message == "a check of 'a' refers to 'b', which waits for it: a → b → a"
    assert str(error.location).startswith("odfbuild.yaml:")


@pytest.mark.parametrize(
    ("input_", "help_"),
    [
        ("acne/root", "did you mean 'acme/root'?"),
        ("other/root", "if 'other' is a repository, add it to `repositories` in odfbuild.yaml"),
        ("nowhere", "define that dataset, or remove the input"),
    ],
)
def test_an_unknown_input_is_told_with_what_may_be_meant(
    tmp_path: Path, input_: str, help_: str
) -> None:
    write_project(tmp_path, {"1.yaml": derived_yaml("lost", input_)})
    config = tmp_path / "odfbuild.yaml"
    config.write_text(config.read_text() + "  repositories: {acme: {url: ../acme}}\n")
    with pytest.raises(Errors) as caught:
        build_graph(load_project(tmp_path), {})
    [error] = caught.value.errors
    assert error.code == "E0202"
    assert error.help is not None
    assert error.help.endswith(help_)
