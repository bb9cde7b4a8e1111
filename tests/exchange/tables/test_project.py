"""Tables of a project, through the program: plan, apply, verify, gc and `odfbuild table`."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.exchange.tables.tables import FORMATS

READ = FORMATS[0].readers["pandas"]
TABLES = """\
  tables:
    - match: [root]
      format: parquet
      location: ../lake
    - match: ["*"]
      format: parquet
      location: ../lake
      name: "{dataset}-history"
      view: history
      partitionBy: [id]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    made = Tiny.fresh(tmp_path / "p")
    with (made.root / "odfbuild.yaml").open("a") as config:
        config.write(TABLES)
    return made


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    share(PlainEngine(), monkeypatch)
    return Program(tiny.root, monkeypatch, capsys)


def lake(tiny: Tiny) -> Path:
    return tiny.root.parent / "lake"


def test_apply_publishes_after_its_commits_and_then_has_nothing_to_do(
    tiny: Tiny, odfbuild: Program
) -> None:
    said = odfbuild.ok("plan").out
    assert "Apply publishes 3 tables of datasets that get new records." in said
    said = odfbuild.apply().out
    assert "published  root " in said
    assert READ(lake(tiny) / "root").num_rows == 3
    assert READ(lake(tiny) / "derived-history").num_rows == 3
    assert "Table" not in odfbuild.ok("plan").out
    assert odfbuild.ok("plan", "--detailed-exitcode").code == 0
    assert "Tables:" not in odfbuild.apply().out


def test_new_records_reach_tables_with_the_next_apply(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    said = odfbuild.apply().out
    assert "derived-history" in said
    assert READ(lake(tiny) / "root").num_rows == 4


def test_a_table_that_is_behind_is_planned_and_published_alone(
    tiny: Tiny, odfbuild: Program
) -> None:
    config = (tiny.root / "odfbuild.yaml").read_text()
    (tiny.root / "odfbuild.yaml").write_text(config.replace(TABLES, ""))
    odfbuild.apply()
    (tiny.root / "odfbuild.yaml").write_text(config)
    said = odfbuild("plan", "--detailed-exitcode")
    assert said.code == 2
    assert "Table root (parquet in ../lake) is written as a whole: it is new." in said.out
    steps = {each["name"]: each["step"] for each in odfbuild.ok("plan", "--json").data["tables"]}
    assert steps == dict.fromkeys(("root", "root-history", "derived-history"), "create")
    for form in ("md", "html"):
        assert "Table root" in odfbuild.ok("plan", "--format", form).out
    from odfbuild import Project

    shown: Any = Project(tiny.root).plan()
    assert "Table root" in shown._repr_html_()
    applied = odfbuild.ok("apply", "-y", "--json").data
    assert [each["status"] for each in applied["tables"]] == ["committed"] * 3
    assert READ(lake(tiny) / "root").num_rows == 3


def test_another_layout_is_planned_with_its_reason(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("partitionBy: [id]", "partitionBy: [value]"))
    said = odfbuild.ok("plan").out
    assert "root-history (parquet in ../lake) is written as a whole: its `partitionBy` changed" in (
        said
    )


def test_in_a_fresh_clone_apply_looks_and_writes_nothing(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    shutil.rmtree(tiny.root / ".odfbuild" / "tables")
    assert "not known here" in odfbuild.ok("table", "ls").out
    assert {e["step"] for e in odfbuild.ok("plan", "--json").data["tables"]} == {"look"}
    assert odfbuild.ok("plan", "--detailed-exitcode").code == 0
    before = sorted(lake(tiny).rglob("*"))
    assert "Tables:" not in odfbuild.apply().out
    assert sorted(lake(tiny).rglob("*")) == before
    assert "Table" not in odfbuild.ok("plan").out


def test_a_table_that_somebody_else_changed_is_refused_until_it_is_allowed(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    (lake(tiny) / "root" / "current" / "x.parquet").write_bytes(b"PAR1")
    tiny.arrive(2)
    said = odfbuild("apply", "-y")
    assert said.code == 4
    assert "error[E1307]" in said.err
    assert READ(lake(tiny) / "derived-history").num_rows == 4
    said = odfbuild("apply", "-y", "--allow", "rewrite:rot")
    assert "did you mean 'root'" in said.err
    odfbuild.ok("apply", "-y", "--allow", "rewrite:root")
    assert READ(lake(tiny) / "root").num_rows == 4


def test_wrong_columns_refuse_one_table_with_their_place_and_the_others_are_published(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("partitionBy: [id]", "partitionBy: [idd]"))
    tiny.arrive(2)
    said = odfbuild("plan")
    assert said.code == 1
    assert "E1304 (odfbuild.yaml:16:21)" in said.out
    said = odfbuild("apply", "-y")
    assert said.code == 4
    assert "--> odfbuild.yaml:16:21" in said.err
    assert "did you mean 'id'" in said.err
    assert READ(lake(tiny) / "root").num_rows == 4
    assert READ(lake(tiny) / "derived-history").num_rows == 3


def test_a_plan_that_only_refuses_a_table_says_what_is_wrong_and_what_to_do_in_every_form(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("partitionBy: [id]", "partitionBy: [idd, valu]"))
    for form in ("text", "md", "html"):
        said = unescape(odfbuild("plan", "--format", form).out).replace("\\", "")
        assert "No changes" not in said
        assert "2 refused" in said or form == "text"
        assert "E1304 (odfbuild.yaml:16:21) 'root' has no column 'idd'" in said
        assert "Also E1304 at odfbuild.yaml:16:26: 'root' has no column 'valu'" in said
        assert "table 'derived-history'. Also" in said
        assert "Did you mean 'id'?" in said
    planned = odfbuild("plan", "--json")
    assert planned.code == 1
    refusals = [each["refusal"] for each in planned.data["tables"] if each["refusal"]]
    assert [each["help"] for each in refusals] == ["did you mean 'id'?"] * 2
    assert [each["source"]["line"] for each in refusals] == [16, 16]
    assert ["'valu'" in each["notes"][0] for each in refusals] == [True, True]


def test_a_saved_plan_tells_of_a_refused_table_as_the_plan_itself(
    tiny: Tiny, odfbuild: Program
) -> None:
    config = tiny.root / "odfbuild.yaml"
    odfbuild.apply()
    config.write_text(config.read_text().replace("partitionBy: [id]", "partitionBy: [idd]"))
    tiny.arrive(2)
    odfbuild("plan", "-o", "plan.json")
    said = odfbuild("apply", "plan.json", "-y")
    assert said.code == 4
    assert "--> odfbuild.yaml:16:21" in said.err
    assert "did you mean 'id'" in said.err


def test_two_tables_of_the_same_name_are_refused(tiny: Tiny, odfbuild: Program) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("    - {match: [root], format: parquet, location: ../other}\n")
    assert odfbuild("apply", "-y").code == 4
    assert READ(lake(tiny) / "root").num_rows == 3
    said = odfbuild("plan")
    assert said.code == 1
    assert "E1312 (odfbuild.yaml:17" in said.out
    assert not (lake(tiny).parent / "other").exists()


def test_a_branch_publishes_nothing_and_says_so(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.derive("more", QUERY)
    said = odfbuild("apply", "-y", "--branch", "b")
    assert "A branch publishes no tables." in said.err
    assert not (lake(tiny) / "more-history").exists()
    odfbuild.ok("promote", "b", "-y")
    assert READ(lake(tiny) / "more-history").num_rows == 3


def test_verify_compares_tables_with_their_datasets(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    assert odfbuild("verify", "--integrity").code == 0
    (file,) = (lake(tiny) / "root" / "data").iterdir()
    file.unlink()
    said = odfbuild("verify", "--integrity", "--json")
    assert said.code == 3
    assert [each["code"] for each in said.data["findings"]] == ["E1313"]
    odfbuild.ok("table", "rebuild", "root")
    assert odfbuild("verify", "--integrity").code == 0


def test_records_that_somebody_changed_in_a_file_are_found(tiny: Tiny, odfbuild: Program) -> None:
    import pyarrow.parquet as pq

    from odfbuild.inspect.tables import table_findings
    from odfbuild.project.config import load_config

    odfbuild.apply()
    config = load_config(tiny.root)
    assert table_findings(config, config.workspace(), ["root", "derived"], records=True) == ()
    (file,) = (lake(tiny) / "root" / "data").iterdir()
    size = file.stat().st_size
    found = pq.read_table(file)
    changed = found.set_column(2, found.schema.field(2), [[7] * found.num_rows])
    pq.write_table(changed, file, compression="zstd")
    state = next((lake(tiny) / "root" / "states").glob("*.json"))
    state.write_text(state.read_text().replace(f'"bytes":{size}', f'"bytes":{file.stat().st_size}'))
    (finding,) = table_findings(config, config.workspace(), ["root"], records=True)
    assert finding.code == "E1313"
    assert "it lacks 3 records and has 3 others" in finding.message


def test_tables_are_listed_shown_rebuilt_and_cleaned_up(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    listed = odfbuild.ok("table", "ls", "--json").data["tables"]
    assert [(each["name"], each["status"]) for each in listed] == [
        ("root", "up_to_date"),
        ("root-history", "up_to_date"),
        ("derived-history", "up_to_date"),
    ]
    assert odfbuild.ok("table", "ls", "derived").out.splitlines()[1].startswith("derived-history")
    shown = odfbuild.ok("table", "show", "root-history").out
    assert "holds       3 partitions, 3 files, 3 records" in shown
    (facts,) = odfbuild.ok("table", "show", "root-history", "--json").data["tables"]
    assert (facts["up_to_date"], facts["state"]["partitions"]) == (True, 3)
    odfbuild.ok("table", "rebuild", "root-history")
    assert "nothing to remove" in odfbuild.ok("table", "gc").out
    said = odfbuild.ok("table", "gc", "--grace", "0", "--dry-run", "--json").data
    assert sum(len(each["files"]) for each in said["tables"]) == 4
    assert "Removed 4 files of tables" in odfbuild.ok("table", "gc", "--grace", "0").out
    assert READ(lake(tiny) / "root-history").num_rows == 3
    assert odfbuild.ok("gc", "--json").data["tables"] != []


def test_the_run_log_tells_of_tables(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (run,) = (tiny.root / ".odfbuild" / "runs").iterdir()
    results = json.loads((run / "run_results.json").read_text())
    assert {each["status"] for each in results["tables"]} == {"committed"}
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert sum(each["event"] == "table" for each in events) == 3


def test_a_saved_plan_publishes_what_it_says(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("plan", "-o", "plan.json")
    odfbuild.ok("apply", "plan.json", "-y")
    assert READ(lake(tiny) / "root").num_rows == 3


def test_graph_catalogue_and_openlineage_have_the_tables(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    assert "└─ table derived-history (parquet)" in odfbuild.ok("graph").out
    (root, derived) = odfbuild.ok("graph", "--json").data
    assert [each["name"] for each in root["tables"]] == ["root", "root-history"]
    assert derived["tables"] == [{"name": "derived-history", "format": "parquet"}]
    assert (
        '"derived" -> "table derived-history (parquet)"'
        in odfbuild.ok("graph", "--format", "dot").out
    )
    assert 'derived-history (parquet)"/]' in odfbuild.ok("graph", "--format", "mermaid").out
    page = odfbuild.ok("docs", "build", "--single-page", "-o", "-").out
    assert "<code>derived-history</code> (parquet, history, by id)" in page
    lines = odfbuild.ok("graph", "--format", "openlineage").out.splitlines()
    events = {each["job"]["name"]: each for each in map(json.loads, lines)}
    event = events["publish root"]
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(lake(tiny) / "root"))
    assert event["inputs"][0]["name"] == "root"


def test_python_shows_and_rebuilds_tables(tiny: Tiny, odfbuild: Program) -> None:
    from odfbuild import Project, Status

    odfbuild.apply()
    project = Project(tiny.root)
    found = project.tables()
    assert found.keys() == {"root", "root-history", "derived-history"}
    assert found["root-history"].state.partitions == 3
    assert found["root-history"].lacks == ""
    (done,) = project.rebuild_tables("root")
    assert (done.status, done.records) == (Status.COMMITTED, 3)
    with pytest.raises(Exception, match="there is no table 'rot'"):
        project.rebuild_tables("rot")
    assert project.verify(integrity=True).findings == ()


def test_a_table_that_no_entry_declares_is_named(odfbuild: Program) -> None:
    said = odfbuild("plan", "--allow", "rewrite:rot")
    assert said.code != 0
    assert "E1311" in said.err
    assert "'rot'" in said.err


def test_an_environment_has_tables_of_its_own(tiny: Tiny, odfbuild: Program) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  environments: {dev: {}}\n")
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.ok("-e", "dev", "apply", "-y")
    assert READ(lake(tiny) / "root").num_rows == 3
    assert READ(lake(tiny).with_name("lake-dev") / "root").num_rows == 4
