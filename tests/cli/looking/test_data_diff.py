"""`diff --data` and `plan --data`: what a change does to records, and who may see which."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the quick tests do without DuckDB")

from tests.apply.in_process import Program, Said, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

CHANGED = "SELECT event_time, id, value * 11 AS value FROM source"
FORMS = ("text", "json", "md", "html")
SHOW = "  show:\n    - match: [derived]\n"
VALUE = 30_303
"""A value of the changed query that nothing else contains."""


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


@pytest.fixture
def built(tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """The project, applied; then its query is another one."""
    share(PlainEngine(), monkeypatch)
    odfbuild.apply()
    tiny.derive("derived", CHANGED.replace("11", "10101"))
    return tiny


def configured(tiny: Tiny, text: str) -> None:
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + text)


def only(said: Said) -> Any:
    """The one dataset in JSON."""
    (found,) = said.data["datasets"]
    return found


def heads(tiny: Tiny) -> dict[str, str]:
    files = (tiny.root / "chains").rglob("refs/*")
    return {str(file): file.read_text() for file in files}


def test_a_changed_query_is_computed_and_compared_with_the_chain_and_commits_nothing(
    odfbuild: Program, built: Tiny
) -> None:
    before = heads(built)
    said = odfbuild.ok("diff", "--data")
    assert "1 changed query reads" in said.err and "all of it (limit 256.0 MB)" in said.err
    for line in (
        "~ derived  committed → changed query",
        "0 added, 0 removed, 3 of 3 common records changed (100 %); 3 → 3 records",
        "by event_time (the first columns that are unique together)",
        "value  3 changed, 100 %",
        "value: from 10 to 30 → from 10101 to 30303",
        "~ event_time=2024-01-03T00:00:00Z  value 30 → 30303",
        "Data diff: 1 dataset with other records, 0 without.",
    ):
        assert line in said.out
    assert heads(built) == before
    assert list((built.root / ".odfbuild" / "scratch").iterdir()) == []


def test_a_project_without_changed_queries_starts_no_engine(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    built.derive("derived", QUERY)
    monkeypatch.setattr(PlainEngine, "transform", None)
    said = odfbuild.ok("diff", "--data")
    assert said.out.strip() == "Data diff: 0 datasets with other records, 0 without."
    assert said.err == ""


def test_inputs_over_the_limit_are_read_in_part_by_both_queries(
    odfbuild: Program, built: Tiny
) -> None:
    (slice_,) = (built.root / "chains" / "root" / "data").iterdir()
    limit = str(slice_.stat().st_size * 2 // 3 + 2)  # a third for each of the two queries
    found = only(odfbuild.ok("diff", "--data", "--json", "--limit-bytes", limit))
    assert found["records"] == {"old": 1, "new": 1, "common": 1}
    assert found["changed"] == 1
    assert found["notes"] == [
        "a sample: both queries were computed over the newest 1 of 3 records of 'root'"
    ]
    for wrong in ("much", "0", "12XB", "-1"):
        said = odfbuild("diff", "--data", "--limit-bytes", wrong)
        assert said.code == 64
        assert "is not a size, such as 500MB" in said.err


def test_new_datasets_are_compared_with_nothing(odfbuild: Program, built: Tiny) -> None:
    built.derive("derived", QUERY)
    built.derive("fresh", CHANGED)
    found = only(odfbuild.ok("diff", "--data", "--json"))
    assert (found["name"], found["added"], found["removed"]) == ("fresh", 3, 0)
    assert found["old"] == "nothing"


def test_a_change_that_is_refused_because_it_breaks_is_compared(
    odfbuild: Program, built: Tiny
) -> None:
    built.derive("derived", "SELECT event_time, id FROM source")
    assert "error[E0314]" in odfbuild("plan").out
    assert only(odfbuild.ok("diff", "--data", "--json"))["changed"] == 3


def test_an_input_without_records_is_an_error_and_the_others_are_compared(
    odfbuild: Program, built: Tiny
) -> None:
    built.derive("fresh", CHANGED)
    built.derive("fresher", CHANGED, "fresh")
    said = odfbuild("diff", "--data")
    assert said.code == 1
    assert "error[E1222]: 'fresher' cannot be computed: 'fresh' has no records yet" in said.err
    assert "odfbuild apply --branch NAME" in said.err
    assert "1 that could not be compared" in said.out
    assert "~ derived" in said.out


def test_a_selection_limits_what_is_compared(odfbuild: Program, built: Tiny) -> None:
    built.derive("fresh", CHANGED)
    assert only(odfbuild.ok("diff", "--data", "fresh", "--json"))["name"] == "fresh"


def test_two_moments_of_a_dataset(odfbuild: Program, built: Tiny) -> None:
    log = odfbuild.ok("log", "root", "--json").data
    first = next(each["blockHash"] for each in log if each["event"]["kind"] == "AddData")
    built.arrive(2)
    odfbuild.apply()
    found = only(odfbuild.ok("diff", "--data", "root", "--from", first, "--json"))
    assert (found["added"], found["removed"], found["changed"]) == (1, 0, 0)
    assert found["key"] == {"columns": ["id"], "origin": "primary key", "repeated": 0}
    assert found["samples"] == [
        {
            "change": "added",
            "key": {"id": 4},
            "old": {},
            "new": {"event_time": "2024-02-02T00:00:00Z", "value": 4},
        }
    ]
    assert found["slices_not_read"] == 1
    same = odfbuild.ok("diff", "--data", "root", "--from", first, "--to", first)
    assert same.out.strip() == "Data diff: 0 datasets with other records, 1 without."
    early = only(odfbuild.ok("diff", "--data", "root", "--from", "2001-01-01", "--json"))
    assert (early["added"], early["records"]["old"]) == (4, 0)


def test_a_branch_and_the_head(odfbuild: Program, built: Tiny) -> None:
    odfbuild.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    found = odfbuild.ok("diff", "--data", "-b", "pr-1", "--json").data
    assert [each["name"] for each in found["datasets"]] == ["derived"]
    assert (found["old"], found["new"]) == ("head", "pr-1")
    assert found["datasets"][0]["changed"] == 3
    built.arrive(2)
    built.derive("derived", QUERY)
    odfbuild.apply()
    assert "the head moved since" in odfbuild.ok("diff", "--data", "-b", "pr-1").out
    assert odfbuild("diff", "--data", "-b", "pr-2").code == 1


def test_a_plan_in_a_branch_shows_what_the_branch_has_computed(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    monkeypatch.setattr(PlainEngine, "transform", None)
    said = odfbuild.ok("plan", "--data", "-b", "pr-1")
    assert "~ derived  head → pr-1" in said.out
    assert "3 of 3 common records changed" in said.out


def test_a_key_that_was_asked_for_has_to_be_there(odfbuild: Program, built: Tiny) -> None:
    found = only(odfbuild.ok("diff", "--data", "--key", "ID", "--json"))
    assert found["key"] == {"columns": ["id"], "origin": "--key", "repeated": 0}
    said = odfbuild("diff", "--data", "--key", "id,valeu")
    assert said.code == 1
    assert "error[E1221]: 'derived' has no column 'valeu' in both states" in said.err
    assert "did you mean 'value'?" in said.err


def test_columns_that_a_check_has_as_unique_are_the_key(odfbuild: Program, built: Tiny) -> None:
    configured(built, "  checks:\n    - match: [derived]\n      unique: [[id]]\n")
    found = only(odfbuild.ok("diff", "--data", "--json"))
    assert found["key"] == {"columns": ["id"], "origin": "unique by a check", "repeated": 0}


def test_options_for_records_need_data(odfbuild: Program, tiny: Tiny) -> None:
    for options in (["--from", "2024-01-01"], ["--to", "x"], ["--key", "id"], ["--format", "md"]):
        assert odfbuild("diff", *options).code == 64
    assert odfbuild("diff", "--data", "--to", "2024-01-01").code == 64
    assert odfbuild("diff", "--data", "--as-of", "2024-01-01").code == 64


# --- What may leave the machine ---


@pytest.mark.parametrize("command", [("diff", "--data"), ("plan", "--data")])
def test_no_value_of_a_dataset_that_is_not_let_out_is_in_any_form_for_others(
    odfbuild: Program, built: Tiny, command: tuple[str, ...]
) -> None:
    shown = {form: odfbuild.ok(*command, "--format", form).out for form in FORMS}
    assert str(VALUE) in shown["text"]
    others = ("json", "md", "html") if command[0] == "plan" else ("md", "html")
    for form in others:
        assert str(VALUE) not in shown[form] and "2024-01-0" not in shown[form]
        assert "3 of 3 common records changed (100 %)" in shown[form]
        assert "does not let them out" in shown[form]
    saved = built.root / "plan.json"
    odfbuild.ok("plan", "--data", "-o", str(saved))
    assert str(VALUE) not in saved.read_text()


@pytest.mark.parametrize("service", ["GITHUB_ACTIONS", "GITLAB_CI"])
def test_the_log_of_a_job_is_for_others(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setenv(service, "true")
    for command in ("diff", "plan"):
        for form in ("text", "json"):
            said = odfbuild.ok(command, "--data", "--format", form).out
            assert str(VALUE) not in said and "3 of 3 common records changed" in said


@pytest.mark.parametrize("form", ["md", "html"])
def test_columns_that_are_excluded_are_in_no_form_for_others(
    odfbuild: Program, built: Tiny, form: str
) -> None:
    configured(built, f"{SHOW}      columns: {{exclude: [VALUE]}}\n")
    text = odfbuild.ok("diff", "--data", "--format", form).out
    assert str(VALUE) not in text
    assert "values of some columns are not shown" in text
    configured(built, "    - match: [derived]\n      columns: {include: [value]}\n")
    text = odfbuild.ok("diff", "--data", "--format", form).out
    assert str(VALUE) in text and "2024-01-03" not in text


def test_an_error_that_may_quote_a_value_is_told_to_others_by_its_code(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfbuild.errors import QueryError

    def fail(*_: object) -> None:
        raise QueryError(f"the value '{VALUE}' cannot be cast", code="E0530", help="cast it")

    monkeypatch.setattr(PlainEngine, "transform", fail)
    for form in ("md", "html"):
        said = odfbuild("diff", "--data", "--format", form)
        assert said.code == 1
        assert str(VALUE) in said.err and str(VALUE) not in said.out
        assert "could not be compared (E0530)" in said.out


def test_all_forms_say_the_same(odfbuild: Program, built: Tiny) -> None:
    configured(built, SHOW)
    data = only(odfbuild.ok("diff", "--data", "--json"))
    assert (data["changed"], data["added"], data["removed"]) == (3, 0, 0)
    for form in ("text", "md", "html"):
        text = odfbuild.ok("diff", "--data", "--format", form).out
        plain = re.sub(r"<[^>]*>|`", " ", text).replace("\\", "")
        plain = re.sub(r"\s+", " ", plain)
        for words in data["words"]:
            assert words in plain
        for sample in data["samples"]:
            assert f"event_time={sample['key']['event_time']}" in plain
            (old,), (new,) = sample["old"].values(), sample["new"].values()
            assert re.search(rf"value {old} (→ )?{new}", plain)
        assert "by event_time (the first columns that are unique together)" in plain


def test_the_plan_has_a_section_in_each_form(odfbuild: Program, built: Tiny) -> None:
    configured(built, SHOW)
    text = odfbuild.ok("plan", "--data").out
    assert "Plan: 0 to create, 1 to change" in text and "value 30 → 30303" in text
    markdown = odfbuild.ok("plan", "--data", "--md").out
    assert markdown.startswith("<!-- odfbuild:tiny:default -->\n")
    assert "#### Records" in markdown and "`value 30 → 30303`" in markdown
    assert "<h2>Records</h2>" in odfbuild.ok("plan", "--data", "--format", "html").out
    records = odfbuild.ok("plan", "--data", "--json").data["records"]
    assert only_of(records)["samples"][2]["new"] == {"value": VALUE}
    assert "records" not in odfbuild.ok("plan", "--json").data


def only_of(records: Any) -> Any:
    (found,) = records["datasets"]
    return found


def test_planning_computes_and_reads_nothing_unasked(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainEngine, "transform", None)
    for form in FORMS:
        odfbuild.ok("plan", "--format", form)


def test_without_duckdb_the_error_names_the_extra(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    built.derive("fresh", CHANGED)
    said = odfbuild("diff", "--data")
    assert said.code == 1
    assert said.err.count("error[E0903]") == 1
    assert "pip install 'odfbuild[duckdb]'" in said.err


def test_without_what_duckdb_makes_times_with_the_error_names_the_extra(
    odfbuild: Program, built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(name: str) -> object:
        return None if name == "pytz" else find_spec(name)

    monkeypatch.setattr("odfbuild.records.duckdb_views.find_spec", found)
    built.derive("fresh", CHANGED)
    said = odfbuild("diff", "--data")
    assert said.code == 1
    assert said.err.count("error[E0903]") == 1
    assert "pip install 'odfbuild[duckdb]'" in said.err


@pytest.mark.parametrize(
    ("library", "options", "extra"),
    [("pyspark", [], "spark,jre"), ("pyarrow", ["--from", "2024-01-01"], "duckdb")],
)
def test_without_other_libraries_the_error_names_their_extra(
    odfbuild: Program,
    built: Tiny,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    options: list[str],
    extra: str,
) -> None:
    def found(name: str) -> object:
        return None if name == library else find_spec(name)

    monkeypatch.setattr("odfbuild.extras.find_spec", found)
    said = odfbuild("diff", "--data", *options)
    assert said.code == 1
    assert "error[E0903]" in said.err and f"pip install 'odfbuild[{extra}]'" in said.err
