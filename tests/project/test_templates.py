"""Templates depend on the project's files only; fetch-time expressions pass through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.errors import OdfbuildError
from odfbuild.project.load import load_project
from odfbuild.project.template import render_template
from tests.project.write_project import root_yaml, write_project


def _texts(text: str, root: Path, **variables: object) -> list[str]:
    return [each.text for each in render_template(text, "x.yaml.j2", root, variables)]


def test_a_matrix_gives_one_text_for_each_combination(tmp_path: Path) -> None:
    text = "# why\nmatrix:\n  a: [1, 2]\n  b: [x, y]\n---\n{{ a }}{{ b }}\n"
    assert _texts(text, tmp_path) == ["1x\n", "1y\n", "2x\n", "2y\n"]


def test_exclude_removes_and_include_adds(tmp_path: Path) -> None:
    text = (
        "matrix:\n  a: [1, 2]\n  b: [x, y]\nexclude:\n  - {a: 1}\n  - {a: 2, b: x}\n"
        "include:\n  - {a: 9, b: z}\n---\n{{ a }}{{ b }}\n"
    )
    assert _texts(text, tmp_path) == ["2y\n", "9z\n"]


def test_variables_of_the_project_are_known(tmp_path: Path) -> None:
    assert _texts("{{ miles }}\n", tmp_path, miles=2000) == ["2000\n"]


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("url: ${{ env.KEY }}\nb: 1\n", "url: ${{ env.KEY }}\nb: 1\n"),
        ("a: |\n  ${{ env.KEY }}\n  x\n", "a: |\n  ${{ env.KEY }}\n  x\n"),
        (
            "{% if true %}\nurl: ${{ env.KEY || 'x' }}\n{% endif %}\n",
            "url: ${{ env.KEY || 'x' }}\n",
        ),
        (
            "{% for i in range(2) %}\n${{ env.A }}{{ i }}\n{% endfor %}\n",
            "${{ env.A }}0\n${{ env.A }}1\n",
        ),
    ],
)
def test_fetch_time_expressions_stay_verbatim(text: str, rendered: str, tmp_path: Path) -> None:
    assert _texts(text, tmp_path) == [rendered]


@pytest.mark.parametrize(
    "expression", ["now()", "[1, 2] | random", "env.HOME", "lipsum()", "''.__class__.__mro__"]
)
def test_clock_chance_and_environment_are_refused(expression: str, tmp_path: Path) -> None:
    with pytest.raises(OdfbuildError):
        render_template("{{ " + expression + " }}\n", "x.yaml.j2", tmp_path, {})


def test_an_edit_within_the_same_second_is_seen(tmp_path: Path) -> None:
    root = write_project(tmp_path, {"a.yaml": root_yaml("aa")})
    assert [each.name for each in load_project(root).definitions] == ["aa"]
    (root / "datasets" / "a.yaml").write_text(root_yaml("bb"))
    assert [each.name for each in load_project(root).definitions] == ["bb"]


def test_an_edited_macro_renders_its_templates_again(tmp_path: Path) -> None:
    template = "{% from 'm.j2' import name %}\n" + root_yaml("{{ name() }}")
    root = write_project(tmp_path, {"a.yaml.j2": template})
    macro = root / "macros" / "m.j2"
    macro.parent.mkdir()
    for name in ("one", "three"):
        macro.write_text("{% macro name() %}" + name + "{% endmacro %}")
        assert [each.name for each in load_project(root).definitions] == [name]
        assert load_project(root) == load_project(root)
