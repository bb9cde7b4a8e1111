"""A pull request on the example: what its reviewer sees, and that apply does exactly that."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
from git import Actor, Repo
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from odfbuild import Project
from odfbuild.engine.contract import (
    Engine,
    IngestTask,
    TransformTask,
)
from odfbuild.odf.chain.projection import Projection
from tests.example.odfbuild_project import ExampleProject
from tests.report.golden import assert_golden

pytestmark = pytest.mark.spark

CHANGED = {
    "nyc.departures.bos": ["create", "run"],
    "nyc.departures.ewr": ["append"],
    "nyc.departures.jfk": ["append"],
    "nyc.departures.lga": ["append"],
    "nyc.departures.morning": ["append"],
    "nyc.flights.late": ["rename"],
    "us.bts.airlines": ["append"],
}
ANN = Actor("Ann", "ann@example.com")
NO_JAVA = {"ODFBUILD_JAVA_HOME": "/nonexistent", "JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def branch(tmp_path_factory: pytest.TempPathFactory) -> ExampleProject:
    """The example, committed and applied; then a branch that is still to be applied."""
    applied = ExampleProject.applied(tmp_path_factory)
    project = applied.copy(tmp_path_factory.mktemp("pull-request") / "project")
    repo = Repo.init(project.root, initial_branch="main")
    (project.root / ".gitignore").write_text(".odfbuild/\n.odfbuild-keys/\nplan.json\n")
    repo.git.add(all=True)
    repo.index.commit("The example, applied", author=ANN, committer=ANN)

    repo.create_head("review").checkout()
    project.edit("departures/nyc.departures.morning.yaml", "AND 959", "AND 1059")
    project.edit("roots/us.bts.airlines.yaml", "Carriers by", "Airlines by")
    template = "departures/by-airport.yaml.j2"
    project.edit(template, "Flights that left", "Departures from")
    project.edit(template, "[EWR, JFK, LGA]", "[EWR, JFK, LGA, BOS]")
    project.edit("flights/nyc.flights.delayed.yaml", "nyc.flights.delayed", "nyc.flights.late")
    folder = project.root / "datasets" / "flights"
    (folder / "nyc.flights.delayed.yaml").rename(folder / "nyc.flights.late.yaml")
    config = project.root / "odfbuild.yaml"
    moved = "  moved:\n    nyc.flights.delayed: nyc.flights.late\n"
    config.write_text(config.read_text() + moved)
    repo.git.add(all=True)
    repo.index.commit("Review me", author=ANN, committer=ANN)
    repo.close()
    project.ok("plan", "-o", "plan.json")
    return project


def steady(text: str) -> str:
    """Without what differs from one run to the next: hashes, identities, times, the version."""
    text = re.sub(r"did:odf:\w+", "did:odf:…", text)
    text = re.sub(r"f1620[0-9a-f]{64}", "f1620…", text)
    text = re.sub(r"→ [0-9a-f]{8}\b", "→ …", text)
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)
    text = re.sub(r'("commit": |at commit |Commit )(["`]|<code>)[0-9a-f]{7,40}', r"\1\2…", text)
    return re.sub(r'("(?:created_at|tool_version)": )"[^"]*"', r'\1"…"', text)


@pytest.mark.parametrize(
    ("form", "file"), [("text", "txt"), ("md", "md"), ("json", "json"), ("html", "html")]
)
def test_a_pull_request_looks_like_this(branch: ExampleProject, form: str, file: str) -> None:
    shown = branch.ok("show", "plan.json", "--format", form).out
    assert_golden(f"pull-request.{file}", steady(shown).rstrip("\n"))
    # Whoever looks at the branch instead of the file sees the same.
    assert steady(branch.ok("plan", "--format", form).out) == steady(shown)


def test_the_comment_renders_as_a_table_and_folded_details(branch: ExampleProject) -> None:
    text = branch.ok("show", "plan.json", "--md").out
    assert len(text) < 65_536
    assert text.startswith("<!-- odfbuild:nycflights:default -->\n")
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    rows = [token for token in tokens if token.type == "tr_open"]
    assert len(rows) == 1 + len(CHANGED)
    cells = [token for token in tokens if token.type == "td_open"]
    assert len(cells) == 4 * len(CHANGED)
    fences = [token.info for token in tokens if token.type == "fence"]
    assert fences == ["diff"] * 3
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert blocks[1].startswith("<details>")
    assert blocks[-1] == "</details>"


class _Page(HTMLParser):
    """Which elements stand open at the end, what the page would fetch, and its dead links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self._ids: set[str] = set()
        self._links: set[str] = set()

    @property
    def dead(self) -> set[str]:
        """Links to places of the page that are not there."""
        return self._links - self._ids

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self._ids.add(f"#{value}")
            elif key == "href" and str(value).startswith("#"):
                self._links.add(str(value))
            elif key in ("src", "href"):
                self.fetched.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(branch: ExampleProject) -> None:
    page = _Page()
    page.feed(branch.ok("show", "plan.json", "--format", "html").out)
    assert page.open == page.fetched == []
    assert not page.dead


def test_the_file_is_of_the_published_schema(branch: ExampleProject) -> None:
    schema = json.loads(branch.ok("schema", "plan").out)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(saved(branch))


def saved(project: ExampleProject) -> dict[str, Any]:
    """The saved plan."""
    return json.loads((project.root / "plan.json").read_text())


def test_diff_and_selection_see_the_same_datasets(branch: ExampleProject) -> None:
    differing = json.loads(branch.ok("diff", "main", "--json").out)["datasets"]
    assert {d["name"] for d in differing} == set(CHANGED)
    selected = json.loads(branch.ok("plan", "-s", "git:main", "--json").out)["datasets"]
    assert {d["name"] for d in selected} == set(CHANGED)


@pytest.fixture(scope="module")
def shown(
    branch: ExampleProject, spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The plan with its records, by form, after one more commit: flights are never early."""
    copy = branch.copy(tmp_path_factory.mktemp("records") / "project")
    project = replace(copy, engine=spark_engine)
    morning = "departures/nyc.departures.morning.yaml"
    project.edit(morning, "dep_delay\n", "GREATEST(dep_delay, 0) AS dep_delay\n")
    config = project.root / "odfbuild.yaml"
    config.write_text(f"{config.read_text()}  show:\n    - match: [nyc.departures.*]\n")
    select = ["-s", "nyc.departures.morning", "-s", "us.bts.airlines"]
    before = project.heads()
    forms = {
        form: project.ok("plan", "--data", *select, "--format", form).out for form in ("md", "html")
    }
    assert project.heads() == before
    shown = "  show:\n    - match: [nyc.departures.*]\n"
    config.write_text(config.read_text().replace(shown, ""))
    forms["hidden"] = project.ok("plan", "--data", *select, "--md").out
    return forms


CHANGED_RECORDS = (
    ("2013-01-01T10:45:00Z", "JFK", "B6", "725", "-1"),
    ("2013-01-01T10:58:00Z", "EWR", "UA", "1696", "-4"),
    ("2013-01-01T11:00:00Z", "EWR", "B6", "507", "-5"),
)


def test_the_comment_shows_three_changed_records_of_the_changed_query(
    shown: dict[str, str],
) -> None:
    text = shown["md"]
    assert text.startswith("<!-- odfbuild:nycflights:default -->\n")
    assert len(text) < 65_536
    assert "15,519 of 23,023 common records changed" in text.replace("\\", "")
    for time, airport, carrier, flight, delay in CHANGED_RECORDS:
        key = f"event_time={time}, airport={airport}, carrier={carrier}, flight={flight}"
        assert f"| `~` | `{key}` | `dep_delay {delay} → 0` |" in text
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert sum(token.type == "table_open" for token in tokens) == 3


def test_the_page_shows_three_changed_records_of_the_changed_query(shown: dict[str, str]) -> None:
    text = shown["html"]
    page = _Page()
    page.feed(text)
    assert page.open == page.fetched == []
    assert not page.dead
    for time, airport, carrier, flight, delay in CHANGED_RECORDS:
        key = f"event_time={time}, airport={airport}, carrier={carrier}, flight={flight}"
        row = text[text.index(f"<code>{key}</code>") :]
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)[:3]
        assert cells == ["dep_delay", delay, "0"]


def test_the_comment_shows_no_record_unless_odfbuild_yaml_says_so(shown: dict[str, str]) -> None:
    text = shown["hidden"]
    assert "15,519 of 23,023 common records changed" in text.replace("\\", "")
    for time, _, _, _, _ in CHANGED_RECORDS:
        assert time not in text
    assert "`show` in odfbuild.yaml does not let them out" in text


def test_apply_does_exactly_what_was_reviewed(
    branch: ExampleProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = branch.copy(tmp_path_factory.mktemp("applied") / "project")
    plan = {d["name"]: d for d in saved(project)["datasets"]}
    assert {name: d["actions"] for name, d in plan.items() if d["actions"]} == CHANGED
    before = project.heads()
    # What arrives or is edited after the review is not part of it.
    project.next_month()
    project.edit("roots/us.faa.planes.yaml", "kind: Root", "kind: Root ")
    said = project.run("apply", "plan.json", "--auto-approve", "--json")
    assert said.code == 0, said.text
    ended = {d["name"]: d for d in json.loads(said.out)["datasets"]}
    assert set(ended) == set(CHANGED)
    for name in CHANGED:
        planned = [event["kind"] for event in plan[name]["events"]]
        log = json.loads(project.ok("log", name, "--json").out)
        added = [block["event"]["kind"] for block in log][: ended[name]["blocks"]]
        if name == "nyc.departures.bos":
            # Nothing leaves Boston: the slice is empty, but the schema is known now.
            planned = ["Seed", *planned, "SetDataSchema", "ExecuteTransform"]
        assert added[::-1] == planned
    after = project.heads()
    untouched = set(before) - set(CHANGED) - {"nyc.flights.delayed"}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert after["nyc.flights.late"] == before["nyc.flights.delayed"]

    # Applied again, every head but that of the renamed one has moved: nothing is begun, no JVM.
    again = project.run("apply", "plan.json", "--auto-approve", env=NO_JAVA)
    assert again.code == 5
    for name in set(CHANGED) - {"nyc.flights.late"}:
        assert f"error[E0701]: '{name}' moved since the plan was made" in again.out
    assert project.heads() == after


Read = tuple[str, str, int, int]
"""A dataset, the alias of its input, and the first and the last offset that are read of it."""


class Counting:
    """An engine that notes what it computes: files, and which offsets of inputs it reads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ingested: list[str] = []
        self.read: Counter[Read] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, request: Any) -> Any:
        if isinstance(request, IngestTask):
            self.ingested.append(Path(request.source_name).name)
        elif isinstance(request, TransformTask):
            for each in request.inputs:
                if each.first is not None and each.last is not None:
                    self.read[request.dataset, each.alias, each.first, each.last] += 1
        return self._engine.run(request)


def chains(project: ExampleProject, branch: str | None = None) -> Mapping[str, Projection]:
    """The datasets, on the head or in a branch."""
    return Project(project.root, branch=branch).workspace().projections()


def test_spark_computes_each_record_once_for_branch_and_head_together(
    spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    applied = ExampleProject.applied(tmp_path_factory)
    copy = applied.copy(tmp_path_factory.mktemp("counted") / "project")
    engine = Counting(spark_engine)
    project = replace(copy, engine=cast(Engine, engine))
    before = chains(project)
    project.edit("departures/nyc.departures.morning.yaml", "AND 959", "AND 1059")
    project.edit("departures/by-airport.yaml.j2", "[EWR, JFK, LGA]", "[EWR, JFK, LGA, BOS]")
    project.edit("roots/us.bts.flights.yaml", "description: ", "description: Reviewed. ")
    project.next_month()

    project.ok("apply", "-b", "pr-12", "--auto-approve")
    after = chains(project, "pr-12")
    new = after["us.bts.flights"].records - before["us.bts.flights"].records
    assert (new, len(before), len(after)) == (28_330, 18, 19)
    assert engine.ingested == ["2013-04.csv.gz"]
    names = {str(state.dataset_id): name for name, state in after.items()}
    expected: Counter[Read] = Counter()
    for name, state in after.items():
        for each in state.transform.inputs if state.transform else ():
            source = names[str(each.dataset_ref)]
            known = before[source].records if name in before else 0
            if known < after[source].records:
                expected[name, each.alias or source, known, after[source].records - 1] = 1
    assert engine.read == expected
    assert ("nyc.departures.bos", "flights", 0, after["us.bts.flights"].records - 1) in expected

    project.ok("promote", "pr-12", "--auto-approve")
    said = project.ok("apply", "--auto-approve")
    assert "No changes" in said.text
    assert engine.read == expected
    assert engine.ingested == ["2013-04.csv.gz"]
    assert {n: s.head for n, s in chains(project).items()} == {n: s.head for n, s in after.items()}
