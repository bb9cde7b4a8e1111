"""A plan that is saved, reviewed and then applied: exactly that, a part of it, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, two derivatives of it and one that derives from `derived`; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("other", QUERY)
    tiny.derive("further", QUERY, source="derived")
    return tiny


def save(odfbuild: Program) -> dict[str, object]:
    """Save the plan of now as `plan.json`."""
    said = odfbuild("plan", "-o", "plan.json")
    assert said.code == 0, said.err
    return json.loads((odfbuild.root / "plan.json").read_text())


def heads(tiny: Tiny) -> dict[str, str]:
    """The head of each dataset that has a chain."""
    return {name: str(p.head) for name, p in tiny.workspace().projections().items()}


def test_what_was_saved_is_applied_whatever_was_edited_since(tiny: Tiny, odfbuild: Program) -> None:
    saved = save(odfbuild)
    tiny.derive("derived", QUERY.replace("10", "99"))
    tiny.arrive(2)
    said = odfbuild.ok("apply", "plan.json", "-y", "--json").data
    assert {d["name"]: d["status"] for d in said["datasets"]} == dict.fromkeys(
        (d["name"] for d in saved["datasets"]),  # type: ignore[attr-defined]
        "committed",
    )
    assert [r["value"] for r in tiny.records("derived")] == [10, 20, 30]
    assert tiny.ids("root") == [1, 2, 3]
    # The new file and the edited query are the next plan.
    left = {d["name"]: d["actions"] for d in odfbuild("plan", "--json").data["datasets"]}
    assert left["root"] == ["run"]
    assert left["derived"] == ["append", "run"]


def test_applying_a_saved_plan_twice_is_refused_before_any_work(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(odfbuild)
    odfbuild.ok("apply", "plan.json", "-y")
    before = heads(tiny)
    # An engine that started would fail at its first step.
    share(None, monkeypatch)
    said = odfbuild("apply", "plan.json", "-y")
    assert said.code == 5
    assert heads(tiny) == before
    assert "  conflict   root " in said.out
    for name in ("root", "derived", "other", "further"):
        assert f"error[E0701]: '{name}' moved since the plan was made: nothing → …" in said.out
        assert f"help: plan it again: `odfbuild plan -s {name}`" in said.out


def test_a_moved_head_stops_only_those_that_depend_on_it(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    for name in ("derived", "other", "further"):
        tiny.derive(name, QUERY.replace("10", "20"), "derived" if name == "further" else "root")
    save(odfbuild)
    odfbuild.ok("apply", "-y", "-s", "derived")
    said = odfbuild("apply", "plan.json", "-y", "--json")
    ended = {
        d["name"]: (d["status"], d["error"] and d["error"]["code"]) for d in said.data["datasets"]
    }
    assert said.code == 4
    assert ended == {
        "derived": ("lost", "E0701"),
        "other": ("committed", None),
        "further": ("lost", "E0701"),
    }
    assert "error[E0701]: 'derived' moved since the plan was made: …" in said.err
    assert "note: the head of 'derived' is block #4, SetTransform, of " in said.err


def test_a_saved_plan_of_which_a_part_is_stale_shows_what_is_refused_and_no_changes_of_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    for name in ("derived", "other"):
        tiny.derive(name, QUERY.replace("10", "20"))
    save(odfbuild)
    odfbuild.ok("apply", "-y", "-s", "derived")
    said = odfbuild("apply", "plan.json", "-y")
    assert said.code == 4
    shown = said.out.partition("Apply:")[0]
    assert "None" not in shown
    assert "  ! derived  refused\n      error[E0701]: 'derived' moved" in shown
    assert "  ~ other    forward-only: SetTransform\n" in shown
    assert "1 dataset refused; apply runs the others.\nPlan: 0 to create, 1 to change" in shown


def test_terraform_15185_a_part_of_a_saved_plan_can_be_applied(
    tiny: Tiny, odfbuild: Program
) -> None:
    save(odfbuild)
    said = odfbuild.ok("apply", "plan.json", "-y", "-s", "derived")
    assert set(heads(tiny)) == {"root", "derived"}
    assert "Also applied, as inputs of selected datasets: root.\n" in said.err
    assert "Not applied: other, further.\n" in said.err


def test_terraform_39139_what_is_excluded_from_a_saved_plan_takes_its_readers_along(
    tiny: Tiny, odfbuild: Program
) -> None:
    save(odfbuild)
    said = odfbuild.ok("apply", "plan.json", "-y", "--exclude", "derived")
    assert set(heads(tiny)) == {"root", "other"}
    assert "Not applied: derived, further.\n" in said.err


def test_a_selection_that_a_saved_plan_cannot_answer_is_refused(
    tiny: Tiny, odfbuild: Program
) -> None:
    save(odfbuild)
    said = odfbuild("apply", "plan.json", "-y", "-s", "tag:daily")
    assert (said.code, heads(tiny)) == (64, {})
    assert "tag" in said.err


def test_only_the_approved_digest_is_applied(tiny: Tiny, odfbuild: Program) -> None:
    digest = str(save(odfbuild)["plan_digest"])
    other = "sha256:" + "0" * 64
    for arguments in (("plan.json",), ()):
        said = odfbuild("apply", *arguments, "-y", "--digest", other)
        assert said.code == 5
        assert "error[E0363]: this is not the plan that was approved" in said.err
        assert f"now: {digest}" in said.err
    assert heads(tiny) == {}
    odfbuild.ok("apply", "-y", "--digest", digest.removeprefix("sha256:"))
    assert len(heads(tiny)) == 4


def test_the_digest_is_that_of_every_making_of_the_same_plan(odfbuild: Program) -> None:
    first, second = save(odfbuild), save(odfbuild)
    assert first["plan_digest"] == second["plan_digest"]
    assert odfbuild("plan", "--json").data["plan_digest"] == first["plan_digest"]


def test_show_says_what_plan_said_in_every_form(odfbuild: Program, tmp_path: Path) -> None:
    said = {
        form: odfbuild("plan", "-o", "plan.json", "--format", form).out
        for form in ("text", "md", "html", "json")
    }
    # A saved plan is shown far from its project.
    elsewhere = Program(tmp_path, odfbuild.monkeypatch, odfbuild.capsys)
    for form, text in said.items():
        shown = elsewhere.ok("show", "p/plan.json", "--format", form).out
        assert _timeless(shown) == _timeless(text), form


def _timeless(text: str) -> list[str]:
    return [line for line in text.splitlines() if "20" not in line or "created" not in line]


def test_a_plan_of_another_project_and_what_is_no_plan_are_refused(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    save(odfbuild)
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("name: tiny", "name: large"))
    (tiny.root / "list.json").write_text("[1]")
    (tiny.root / "text.json").write_text("Plan: 1 to create")
    for file, code, message in (
        ("plan.json", "E0362", "this plan is for the project 'tiny', and this is 'large'"),
        ("list.json", "E0360", "list.json is not a plan: it has no `format_version`"),
        ("text.json", "E0360", "text.json is not a plan: it is not JSON"),
        ("none.json", "E0360", "none.json cannot be read: No such file or directory"),
    ):
        said = odfbuild("apply", file, "-y")
        assert said.code == 1
        assert f"error[{code}]: {message}" in said.err
    assert heads(tiny) == {}


def test_a_plan_that_cannot_be_saved_says_so(odfbuild: Program) -> None:
    said = odfbuild("plan", "-o", "no/such/folder/plan.json")
    assert said.code == 1
    assert "error[E0910]: no/such/folder/plan.json cannot be written" in said.err


def test_detailed_exit_codes_tell_changes_from_none(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild("plan", "--detailed-exitcode").code == 2
    assert odfbuild("plan", "--detailed-exitcode", "-o", "plan.json").code == 2
    odfbuild.apply()
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    tiny.derive("derived", QUERY, source="no.such.dataset")
    assert odfbuild("plan", "--detailed-exitcode").code == 1


def test_fail_fast_begins_nothing_more(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    (tiny.root / "data" / "2.csv").write_text("event_time,id,value\nno,time,here\n")
    second = (tiny.root / "datasets" / "root.yaml").read_text()
    (tiny.root / "datasets" / "zoo.yaml").write_text(second.replace("name: root", "name: zoo"))
    ended = {
        flag: {
            d["name"]: (d["status"], d["because"])
            for d in odfbuild("apply", "-y", "-j", "1", flag, "--json").data["datasets"]
        }
        for flag in ("--fail-fast", "--keep-going")
    }
    begun = {
        flag: [n for n, (status, _) in e.items() if status == "failed"] for flag, e in ended.items()
    }
    assert begun["--keep-going"] == ["root", "zoo"]
    (first,) = begun["--fail-fast"]
    (left,) = {"root", "zoo"} - {first}
    because = f"not started: '{first}' did not complete, and that ends this run"
    assert ended["--fail-fast"][left] == ("skipped", because)
