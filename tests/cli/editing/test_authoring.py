"""Verbs for whoever writes definitions: see them rendered, as a graph, and from chains."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.project.write_project import derived_yaml
from tests.report.golden import assert_golden

_SECRET = "5up3r-s3cret-value"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """root → derived → further, root → two instances of a template → best."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    folder = tiny.root / "datasets"
    query = "SELECT event_time, id, value * {{ n }} AS value FROM src"
    text = derived_yaml("per.{{ n }}", "root", query)
    (folder / "per.yaml.j2").write_text("matrix:\n  n: [2, 3]\n---\n" + text)
    best = derived_yaml("best", "per.2", "SELECT event_time, id, value FROM src")
    (folder / "best.yaml").write_text(
        best.replace(
            "alias: src\n", "alias: src\n        - datasetRef: per.3\n          alias: b\n", 1
        )
    )
    return tiny


def test_a_graph_looks_like_this(odfbuild: Program) -> None:
    assert_golden("graph.txt", odfbuild.ok("graph").out.rstrip())
    assert_golden("graph.dot", odfbuild.ok("graph", "--dot").out.rstrip())
    assert_golden("graph.mmd", odfbuild.ok("dag", "--mermaid").out.rstrip())
    assert odfbuild.ok("graph", "derived+").out == "derived\n└─ further\n"


def test_a_deep_graph_is_drawn(odfbuild: Program, tiny: Tiny) -> None:
    from odfbuild.odf.model import DatasetKind
    from odfbuild.report.graph import GraphView, render_tree

    names = [f"d{n:04}" for n in range(3_000)]
    inputs = {name: [before] for before, name in pairwise(names)}
    view = GraphView(kinds=dict.fromkeys(names, DatasetKind.Derivative), inputs=inputs)
    assert len(render_tree(view).splitlines()) == 3_000


def test_what_is_rendered_is_plain_and_means_the_same(odfbuild: Program, tiny: Tiny) -> None:
    text = odfbuild.ok("render", "per.*").out
    assert text.startswith("# datasets/per.yaml.j2 (n=2)\nkind: DatasetSnapshot\nversion: 1\n")
    assert [d["content"]["name"] for d in yaml.safe_load_all(text)] == ["per.2", "per.3"]
    odfbuild.apply()
    odfbuild.ok("render", "-o", "plain")
    for file in (tiny.root / "datasets").iterdir():
        file.unlink()
    for file in (tiny.root / "plain").iterdir():
        file.rename(tiny.root / "datasets" / file.name)
    assert odfbuild.ok("diff").out == "No differences.\n"
    assert odfbuild("plan", "--detailed-exitcode").code == 0


def test_rendering_twice_gives_the_same_bytes(odfbuild: Program) -> None:
    assert odfbuild.ok("render").out == odfbuild.ok("compile").out


def test_a_chain_is_imported_as_the_definition_that_it_amounts_to(
    odfbuild: Program, tiny: Tiny
) -> None:
    odfbuild.apply()
    for file in (tiny.root / "datasets").iterdir():
        file.unlink()
    for name in ("root", "DERIVED", "further", "per.2", "per.3", "best"):
        odfbuild.ok("import", name, "--write")
    assert odfbuild.ok("diff").out == "No differences.\n"
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    printed = odfbuild.ok("import", "derived").out
    first, _, rest = (tiny.root / "datasets" / "derived.yaml").read_text().partition("\n")
    assert first == "# yaml-language-server: $schema=../.odfbuild/schemas/DatasetSnapshot.json"
    assert printed == rest
    assert (tiny.root / "datasets" / first.partition("=")[2]).is_file()
    said = odfbuild("import", "derived", "--write")
    assert said.code == 1
    assert "error[E0114]: datasets/derived.yaml is there already" in said.err
    assert "did you mean 'derived'?" in odfbuild("import", "derved").err


def test_terraform_516_a_secret_of_the_environment_is_in_no_file(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tiny.root / "datasets" / "root.yaml"
    schema = "schema:\n          - event_time"
    text = root.read_text().replace(
        "header: true", "header: true\n        nullValue: ${{ env.TOKEN }}"
    )
    assert schema in text
    root.write_text(text)
    env = {**os.environ, "TOKEN": _SECRET, "NO_COLOR": "1"}
    said = b""
    for command in (
        ["plan", "-o", "plan.json"],
        ["plan", "--md"],
        ["render"],
        ["render", "-o", "plain"],
        ["show", "plan.json", "--format", "html"],
        ["diff", "--json"],
        ["explain", "root", "--json"],
    ):
        entry = "from odfbuild.cli.main import main\nmain()"
        done = subprocess.run(
            [sys.executable, "-c", entry, *command],
            cwd=tiny.root,
            env=env,
            capture_output=True,
            check=True,
        )
        said += done.stdout + done.stderr
    files = [path for path in tiny.root.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    assert b"${{ env.TOKEN }}" in said + written
    assert _SECRET.encode() not in said + written
