"""What one file of a project may ask for, and that whoever wrote it is told which file it is."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odfbuild import limits
from odfbuild.errors import Errors, Location, OdfbuildError, ProjectError
from odfbuild.project import bounded as process
from odfbuild.project.boundary import Boundary
from odfbuild.project.load import read_project
from odfbuild.project.source import read_text
from odfbuild.project.template import render_template
from odfbuild.project.yaml import source
from odfbuild.project.yaml.source import read_documents

ROOT = Path(__file__).parents[2]


def refused(text: str) -> ProjectError:
    with pytest.raises(ProjectError) as found:
        render_template(text, "a.yaml.j2", Path("/nowhere"), {})
    assert found.value.location is not None
    assert found.value.location.file == "a.yaml.j2"
    return found.value


# --- Templates ---


@pytest.mark.parametrize(
    "expression", ["'x' * 3000000000", "'x'|center(2000000000)", "'%2000000000d'|format(1)"]
)
def test_a_template_has_so_much_memory(expression: str) -> None:
    error = refused(f"a: {{{{ {expression} }}}}\n")
    assert error.code == "E0126"
    assert "512 MiB of memory" in error.message


def test_a_template_has_so_much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RENDER_SECONDS", 0.2)
    process._forget()  # the next one is forked from here
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    assert refused(loop).code == "E0126"
    process._forget()


def test_a_template_has_so_many_instances() -> None:
    keys = "".join(f"  k{n}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for n in range(10))
    error = refused(f"matrix:\n{keys}---\na: 1\n")
    assert error.code == "E0126"
    assert "10,000,000,000 combinations" in error.message


def test_a_template_renders_so_many_bytes() -> None:
    assert "more than 2 MiB" in refused("a: {{ 'x' * 3000000 }}\n").message
    front = f"matrix: {{n: {list(range(70))}}}\n---\n"
    assert "more than 64 MiB" in refused(front + "a: {{ 'x' * 1000000 }}\n").message


def test_blank_lines_and_openings_take_time_in_proportion() -> None:
    blank = "\n" * 20_000 + "a: 1\n"
    assert [each.text for each in render_template(blank, "a", Path("/x"), {})] == [blank]
    text = "a: ${{ env.A }} ${{ env.B\n" + "}" * 3 + "\n"
    assert render_template(text, "a", Path("/x"), {})[0].text == text
    with pytest.raises(OdfbuildError):
        render_template("${{" * 30_000, "a.yaml.j2", Path("/x"), {})


def test_rendering_goes_on_in_threads_and_after_the_process_is_lost() -> None:
    def rendered() -> str:
        return render_template("a: {{ 1 + 1 }}\n", "a", Path("/x"), {})[0].text

    assert rendered() == "a: 2\n"
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(rendered())) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == ["a: 2\n"] * 8
    os.kill(process._process()._id, 9)
    assert refused("a: {{ 1 }}\n").code == "E0126"  # this text is not tried again
    assert rendered() == "a: 2\n"


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_process_that_answers_no_more_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(process, "_WAITED", 0.2)
    assert render_template("a: {{ 1 + 1 }}\n", "a", Path("/x"), {})[0].text == "a: 2\n"
    os.kill(process._process()._id, signal.SIGSTOP)
    assert "seconds" in refused(f"a: {{{{ 1 }}}} # {'x' * size}\n").message
    monkeypatch.undo()
    assert render_template("a: {{ 1 + 1 }}\n", "a", Path("/x"), {})[0].text == "a: 2\n"


def test_a_process_finalizes_nothing_of_its_parent() -> None:
    """A finalizer may wait for a thread that only the parent has."""

    class Stuck:
        def __del__(self) -> None:
            if os.getpid() != here:
                time.sleep(3_600)

    here = os.getpid()
    circle = [Stuck()]
    circle.append(circle)  # type: ignore[arg-type]
    del circle
    process._forget()
    text = "{% for n in range(100000) %}{% set a = [[n], [n]] %}{% endfor %}a: {{ 1 + 1 }}\n"
    assert render_template(text, "a", Path("/x"), {})[0].text.strip() == "a: 2"


def test_errors_of_every_kind_are_the_same_behind_a_pipe() -> None:
    place = Location("a.yaml", 1, 2, "text", 3)
    one = ProjectError("wrong", code="E0123", location=place, notes=("n",), help="do", dataset="d")
    for error in (one, Errors([one, one])):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error) or [vars(e) for e in again.errors] == [vars(one)] * 2


# --- YAML ---


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 200_000,
        "- " * 100_000,
        "? " * 50_000,
        "a: " + "{b: " * 50_000,
        "a: &a [*a]\n",
        "".join(f"{' ' * n}a:\n" for n in range(3_000)),
    ],
    ids=["flow", "dashes", "keys", "maps", "itself", "lines"],
)
def test_values_in_values_end_at_a_depth(text: str) -> None:
    with pytest.raises(ProjectError) as found:
        read_documents(text, "a.yaml")
    assert found.value.message == f"values are nested more than {limits.DEPTH} deep"
    assert found.value.location is not None
    assert found.value.location.file == "a.yaml"


@pytest.mark.parametrize(
    "text",
    [
        "a: [" + "a," * limits.VALUES + "]\n",
        "a:\n" + "- a\n" * limits.VALUES,
        "---\na: b\n" * limits.VALUES,
    ],
    ids=["flow", "items", "documents"],
)
def test_a_text_holds_so_many_values_and_no_more(text: str) -> None:
    with pytest.raises(ProjectError) as found:
        read_documents(text, "a.yaml")
    assert found.value.message == "this text holds more than 200,000 values"


def test_the_places_of_many_mistakes_are_found_in_one_look(tmp_path: Path) -> None:
    """Each used to read the whole text again, which took hours for twenty thousand."""
    (tmp_path / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent:\n  name: p\n")
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "a.yaml").write_text("---\na: b\n" * 5_000)
    begun = time.process_time()
    project = read_project(tmp_path)
    assert time.process_time() - begun < 10
    places = [str(error.location) for each in project.wrong for error in each.errors]
    assert places == [f"datasets/a.yaml:{2 * n}:1" for n in range(1, 5_001)]


def test_as_many_as_are_allowed_are_read() -> None:
    text = "[" * limits.DEPTH + "]" * limits.DEPTH
    [value] = read_documents(text, "a.yaml")
    for _ in range(limits.DEPTH - 1):
        [value] = value
    assert value == []


# --- Files ---


def test_only_regular_files_of_a_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(b"x" * (limits.FILE_BYTES + 1))
    (tmp_path / "exact").write_bytes(b"x" * limits.FILE_BYTES)
    for name, code in (("pipe", "E0103"), ("zero", "E0103"), ("large", "E0126")):
        with pytest.raises(ProjectError) as found:
            read_text(tmp_path / name, name)
        assert (found.value.code, str(found.value.location)) == (code, name)
    assert len(read_text(tmp_path / "exact", "exact")) == limits.FILE_BYTES


def test_links_in_a_loop_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent:\n  name: p\n")
    folder = tmp_path / "datasets"
    folder.mkdir()
    (folder / "up").symlink_to("..")
    (folder / "one").mkdir()
    (folder / "again").symlink_to("one")
    (folder / "two").symlink_to("one")
    project = read_project(tmp_path)
    errors = [each for wrong in project.wrong for each in wrong.errors]
    assert [each.code for each in errors] == ["E0127", "E0127"]


@pytest.mark.parametrize("depth", [1, 3])
def test_hidden_files_are_never_opened_wherever_links_lead(tmp_path: Path, depth: int) -> None:
    root = tmp_path.joinpath(*["sub"] * depth)
    (root / "data" / ".inbox").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").touch()
    (tmp_path / "shared").mkdir()
    (root / "to-git").symlink_to(tmp_path / ".git")
    (root / "to-config").symlink_to(tmp_path / ".git" / "config")
    (root / "to-shared").symlink_to(tmp_path / "shared")
    boundary = Boundary(root)
    for name in (".env", "to-config", "to-git/config", "data/.inbox/x.csv", "data/../.env"):
        assert not boundary.may_open(root / name), name
        with pytest.raises(OdfbuildError, match="hidden file"):
            boundary.check_open(root / name)
    for name in ("data/x.csv", "to-shared/x.csv", "x.y.csv", "data/../x.csv"):
        assert boundary.may_open(root / name), name


def test_a_project_in_a_hidden_folder_reads_its_own_files(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    root = tmp_path / ".data" / "project"
    root.mkdir(parents=True)
    boundary = Boundary(root)
    assert boundary.may_open(root / "datasets" / "a.yaml")
    assert not boundary.may_open(root / ".env")
    assert not boundary.may_open(tmp_path / ".data" / "other")


_PIECES = [
    "- ",
    "-\n",
    "? ",
    ": ",
    "a: ",
    "a:\n",
    "\n",
    " ",
    "  ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "a",
    "---\n",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=400).map("".join))
@settings(max_examples=500)
def test_a_text_that_is_read_without_counting_could_not_reach_the_bounds(text: str) -> None:
    assume(source._is_small(text))
    loader = source._loader(bounded=True)(text)
    deepest = 0
    with contextlib.suppress(yaml.YAMLError):
        while loader.check_node():
            deepest = max(deepest, _depth(loader.get_node()))
    assert deepest <= limits.DEPTH
    assert loader.values <= limits.VALUES


def _depth(node: yaml.Node) -> int:
    parts = node.value if isinstance(node, yaml.CollectionNode) else ()
    flat = itertools.chain.from_iterable(parts) if isinstance(node, yaml.MappingNode) else parts
    return 1 + max(map(_depth, flat), default=0)
