"""What users of other tools complain about, by the number of their issue, and what happens here.

Further ones stand beside what they are about: terraform#15185, #39139 in test_saved_plans,
terraform#28710 in test_locks, terraform#2967 in test_protection, terraform#516 in test_authoring,
dbt-core#9564 in test_environments.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import SetInfo, SetLicense
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny
from tests.project.write_project import derived_yaml


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """root → derived → further; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    return tiny


@pytest.fixture
def applied(odfbuild: Program) -> Program:
    """The program after the first apply."""
    odfbuild.apply()
    return odfbuild


def planned(odfbuild: Program, *arguments: str) -> dict[str, dict[str, Any]]:
    """What the plan does with each dataset that it does something with."""
    datasets = odfbuild("plan", "--json", *arguments).data["datasets"]
    return {d["name"]: d for d in datasets if d["actions"]}


def causes(odfbuild: Program, name: str) -> list[dict[str, Any]]:
    """What reaches a dataset from its inputs, whether anything will be done with it or not."""
    datasets = odfbuild("plan", "--json").data["datasets"]
    found: list[dict[str, Any]] = next(
        d["affected_columns"]["causes"] for d in datasets if d["name"] == name
    )
    return found


def heads(tiny: Tiny) -> dict[str, str]:
    """The head of each chain."""
    return {name: str(p.head) for name, p in tiny.workspace().projections().items()}


def per_instance(tiny: Tiny, numbers: range, where: str = "") -> None:
    """A template with an instance for each number."""
    query = f"SELECT event_time, id, value * {{{{ n }}}} AS value FROM src{where}"
    text = derived_yaml("per.{{ n }}", "root", query)
    matrix = f"matrix:\n  n: {list(numbers)}\n---\n"
    (tiny.root / "datasets" / "per.yaml.j2").write_text(matrix + text)


@pytest.mark.parametrize("call", ["{{ now() }}", "{{ range(9) | random }}", "{{ env.HOME }}"])
def test_dbt_core_9563_what_differs_from_one_rendering_to_the_next_is_refused(
    odfbuild: Program, tiny: Tiny, call: str
) -> None:
    query = f"SELECT event_time, id, '{call}' AS value FROM src"
    (tiny.root / "datasets" / "t.yaml.j2").write_text(derived_yaml("t", "root", query))
    said = odfbuild("plan")
    assert said.code == 1
    assert "--> datasets/t.yaml.j2:15:" in said.out


def test_bazel_3026_every_run_has_a_reason_and_so_has_none(tiny: Tiny, applied: Program) -> None:
    tiny.arrive(2)
    causes = applied.ok("explain", "further", "--json").data["causes"]
    while causes[0]["children"]:
        causes = causes[0]["children"]
    assert (causes[0]["code"], causes[0]["message"]) == ("source_has_news", "data/2.csv is new")
    applied.apply()
    idle = applied.ok("explain", "further", "--json").data
    assert idle["status"] == "up_to_date"
    assert [each["what"] for each in idle["settled"]] == ["the definition", "derived"]


def test_snakemake_1694_comments_white_space_and_moved_files_run_nothing(
    tiny: Tiny, applied: Program
) -> None:
    folder = tiny.root / "datasets"
    (folder / "deep").mkdir()
    text = "# A comment.\n" + (folder / "derived.yaml").read_text()
    (folder / "deep" / "renamed.yaml").write_text(text)
    (folder / "derived.yaml").unlink()
    tiny.derive("further", QUERY.replace(", ", ",   ") + " -- all", source="derived")
    for file in folder.rglob("*.yaml"):
        os.utime(file, (0, 0))
    # Nor does another release of odfbuild.
    applied.monkeypatch.setattr("odfbuild.__version__", "99.0")
    assert planned(applied) == {}
    assert "= further  cosmetic" in applied.ok("plan").out


def test_kamu_cli_38_an_edited_dataset_appends_the_least_that_says_it(
    tiny: Tiny, applied: Program
) -> None:
    before = len(tiny.events("derived"))
    tiny.derive("derived", QUERY.replace("10", "20"))
    text = (tiny.root / "datasets" / "derived.yaml").read_text()
    info = "    - kind: SetInfo\n      description: Twenty\n"
    (tiny.root / "datasets" / "derived.yaml").write_text(text + info)
    applied.apply()
    added = [type(event).__name__ for event in tiny.events("derived")[before:]]
    assert added == ["SetTransform", "SetInfo"]
    assert [r["value"] for r in tiny.records("derived")] == [10, 20, 30]


def test_sqlmesh_3866_who_comes_second_is_told_before_any_work(
    tiny: Tiny, applied: Program
) -> None:
    tiny.arrive(2)
    applied.ok("plan", "-o", "plan.json")
    applied.apply()
    before = heads(tiny)
    share(None, applied.monkeypatch)  # no engine to work with
    said = applied("apply", "plan.json", "-y")
    assert said.code == 5
    assert "'root' moved since the plan was made" in said.err
    assert heads(tiny) == before


def test_dvc_1015_there_is_no_state_beside_the_chains(tiny: Tiny, applied: Program) -> None:
    tiny.arrive(2)
    before = applied.ok("plan", "--json").data, applied.ok("plan", "--full").out
    shutil.rmtree(tiny.root / ".odfbuild")
    after = applied.ok("plan", "--json").data, applied.ok("plan", "--full").out
    for plan in (before[0], after[0]):
        del plan["created_at"]
    assert after == before
    # What was generated tells Git to leave it alone.
    assert (tiny.root / ".odfbuild" / ".gitignore").read_text().split() == ["*"]


def test_terraform_32148_a_failure_stops_nothing_that_does_not_need_it(
    tiny: Tiny, applied: Program
) -> None:
    other = (tiny.root / "datasets" / "root.yaml").read_text()
    other = other.replace("name: root", "name: broken").replace("data/*.csv", "broken/*.csv")
    (tiny.root / "datasets" / "broken.yaml").write_text(other)
    (tiny.root / "broken").mkdir()
    (tiny.root / "broken" / "1.csv").write_text("event_time,id,value\nno,time,here\n")
    tiny.derive("of.broken", QUERY, source="broken")
    tiny.arrive(2)
    said = applied("apply", "-y", "--json")
    assert said.code == 4
    ended = {d["name"]: (d["status"], d["because"]) for d in said.data["datasets"]}
    assert ended["of.broken"] == ("skipped", "'broken' did not complete")
    assert [ended[n][0] for n in ("root", "derived", "further")] == ["committed"] * 3
    # Running it again is resuming it.
    (tiny.root / "broken" / "1.csv").write_text((tiny.root / "data" / "1.csv").read_text())
    said = applied.ok("apply", "-y", "--json")
    assert [d["name"] for d in said.data["datasets"]] == ["broken", "of.broken"]


def test_terraform_10507_a_long_plan_begins_with_a_line_for_each_dataset(
    tiny: Tiny, applied: Program
) -> None:
    per_instance(tiny, range(300))
    text = applied.ok("plan").out
    assert len(text.splitlines()) < 220
    assert "… and 100 more datasets; --full lists all" in text
    assert text.splitlines()[-1].startswith("Plan: 300 to create")
    # What drops records comes before all others, however many there are.
    tiny.derive("further", QUERY.replace("10", "20"), source="derived")
    first = applied.ok("plan", "--allow", "rebuild:further").out.splitlines()[2]
    assert first.startswith("  -/+ further  rebuilt")
    assert len(applied.ok("plan", "--md").out) < 65_536


def test_terraform_28776_what_others_appended_is_theirs_until_a_definition_says_it(
    tiny: Tiny, applied: Program
) -> None:
    store = tiny.workspace().dataset("derived")
    events = (
        SetInfo(description="From elsewhere"),
        SetLicense(short_name="CC0", name="CC0", website_url="https://example.com"),
    )
    store.append(store.head(), events, Timestamp.now())
    assert planned(applied) == {}
    assert "drift" not in applied.ok("plan").out
    text = (tiny.root / "datasets" / "derived.yaml").read_text()
    info = "    - kind: SetInfo\n      description: From here\n"
    (tiny.root / "datasets" / "derived.yaml").write_text(text + info)
    (event,) = planned(applied)["derived"]["events"]
    assert event["before"]["description"] == "From elsewhere"


def test_argo_cd_3588_changes_failures_and_wrong_usage_have_different_exit_codes(
    tiny: Tiny, applied: Program
) -> None:
    assert applied("plan", "--detailed-exitcode").code == 0
    tiny.arrive(2)
    assert applied("plan", "--detailed-exitcode").code == 2
    assert applied("plan", "--detailed-exitcod").code == 64
    tiny.derive("further", QUERY, source="nowhere")
    assert applied("plan", "--detailed-exitcode").code == 1


def test_dbt_core_5605_a_misspelt_key_is_an_error_at_its_place(
    tiny: Tiny, odfbuild: Program
) -> None:
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(file.read_text().replace("order: ByName", "ordr: ByName"))
    other = tiny.root / "datasets" / "derived.yaml"
    other.write_text(other.read_text().replace("inputs:", "input:"))
    said = odfbuild("validate")
    assert said.code == 1
    assert "--> datasets/root.yaml:11:9" in said.err
    assert "did you mean 'order'?" in said.err
    assert "did you mean 'inputs'?" in said.err


def test_dbt_core_3469_instances_of_a_template_are_datasets_and_reviewed_as_one_change(
    tiny: Tiny, odfbuild: Program
) -> None:
    per_instance(tiny, range(24))
    odfbuild.apply()
    per_instance(tiny, range(24), where=" WHERE id > 1")
    text = odfbuild.ok("plan", "-s", "template:per").out
    assert text.count("WHERE id > 1") == 1
    assert text.count("the same change as per.0, from datasets/per.yaml.j2 (n=") == 23
    assert list(planned(odfbuild, "-s", "per.7")) == ["per.7"]


def test_dbt_core_3226_a_filter_that_changes_is_not_overlooked(
    tiny: Tiny, applied: Program
) -> None:
    tiny.derive("derived", QUERY + " WHERE id > 1")
    assert planned(applied)["derived"]["affected_columns"]["records"] is True
    (cause,) = causes(applied, "further")
    assert (cause["column"], cause["by"], cause["input"]) == (None, "records", "derived")


def test_dbt_core_15979_a_changed_column_is_followed_to_the_columns_made_from_it(
    tiny: Tiny, applied: Program
) -> None:
    tiny.derive("derived", QUERY.replace("10", "20"))
    assert planned(applied)["derived"]["affected_columns"]["changed"] == ["value"]
    assert causes(applied, "further") == [
        {"column": "value", "by": "derivation", "input": "derived", "input_column": "value"}
    ]
    assert "affects further: value (derivation)" in applied.ok("plan").out


def test_terraform_17599_a_definition_that_goes_deletes_nothing(
    tiny: Tiny, applied: Program
) -> None:
    before = heads(tiny)
    (tiny.root / "datasets" / "further.yaml").unlink()
    said = applied.ok("plan")
    assert ". further  orphaned: its definition was removed; its chain stays" in said.out
    assert applied("plan", "--detailed-exitcode").code == 0
    applied.apply()
    assert heads(tiny) == before


def test_dbt_core_2079_what_a_run_will_read_is_known_before_it(
    tiny: Tiny, applied: Program
) -> None:
    tiny.arrive(2)
    applied.ok("apply", "-y", "-s", "root")
    pending = planned(applied)["derived"]["pending"]
    assert (pending["records"], pending["exact"]) == (1, True)
    event = tiny.events("root")[-1]
    assert pending["bytes"] == event.new_data.size
    total = "Will read 2 records of datasets; 1.8 KB of new input on disk."
    assert total in applied.ok("plan").out


def test_dbt_core_3589_a_cache_never_decides_what_is_seen(tiny: Tiny, applied: Program) -> None:
    applied.ok("plan")
    # Another text of the same length, at once: neither size nor time tells.
    file = tiny.root / "datasets" / "derived.yaml"
    state = file.stat()
    file.write_text(file.read_text().replace("* 10", "* 11"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with_cache = applied("plan", "--json").data
    shutil.rmtree(tiny.root / ".odfbuild")
    without = applied("plan", "--json").data
    assert json.dumps(with_cache["datasets"]) == json.dumps(without["datasets"])
    assert planned(applied)["derived"]["actions"] == ["append"]
