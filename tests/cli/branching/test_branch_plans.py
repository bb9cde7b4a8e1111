"""`plan -b` and `apply -b`: what they are about, what they say, and that no head moves."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from tests.apply.tiny import QUERY
from tests.cli.branches import BY_100, Bench, applied, bench, plan_of

__all__ = ["applied", "bench"]


def names(plan: Any) -> dict[str, list[str]]:
    return {each["name"]: each["actions"] for each in plan["datasets"]}


def test_apply_in_a_branch_runs_what_changed_and_its_readers_and_moves_no_head(
    bench: Bench,
) -> None:
    before = bench.heads()
    bench.arrive(2)  # new data, which nothing of the branch asks for
    bench.derive("derived", BY_100)
    assert names(plan_of(bench, "-b", "pr-1")) == {"derived": ["append"], "leaf": []}
    bench("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived+")
    assert bench.heads() == before
    assert bench.space().branch_names() == {"pr-1"}
    assert set(bench.space().branches()["pr-1"]) == {"derived", "leaf"}
    assert bench.values("derived") == [10, 20, 30]
    assert bench.values("derived", "pr-1") == [100, 200, 300]
    assert bench.values("leaf", "pr-1") == [1000, 2000, 3000]
    assert bench.values("root", "pr-1") == [1, 2, 3]
    bench("plan", "-b", "pr-1")
    assert "No changes in branch pr-1." in bench("plan", "-b", "pr-1")


def test_a_root_is_polled_in_a_branch_only_when_it_changed_or_is_selected(bench: Bench) -> None:
    bench.arrive(2)
    bench.derive("derived", BY_100)
    assert "root" not in names(plan_of(bench, "-b", "pr-1"))
    chosen = plan_of(bench, "-b", "pr-1", "-s", "root+")
    assert names(chosen)["root"] == ["run"]
    assert "made" in names(chosen)
    bench("apply", "-y", "-b", "pr-1", "-s", "root")
    assert len(bench.values("root", "pr-1")) == 4
    assert len(bench.values("root")) == 3


def test_a_dataset_of_the_branch_reads_new_data_of_the_head(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived+")
    bench.arrive(2)
    bench("apply", "-y", "-s", "root")
    plan = plan_of(bench, "-b", "pr-1")
    assert names(plan) == {"derived": ["run"], "leaf": ["run"]}
    bench("apply", "-y", "-b", "pr-1")
    assert bench.values("derived", "pr-1") == [100, 200, 300, 400]
    assert bench.values("derived") == [10, 20, 30]


def test_a_plan_says_after_which_blocks_its_datasets_go_on_in_all_forms(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1")
    bench.derive("derived", BY_100.replace("100", "1000"))
    bench.derive("made", BY_100)
    data = plan_of(bench, "-b", "pr-1")["branch"]
    assert data["name"] == "pr-1"
    starts = {each["dataset"]: each for each in data["starts"]}
    assert starts["derived"]["of"] == "branch"
    assert starts["made"]["of"] == "head"
    assert starts["made"]["block"] == bench.heads()["made"].decode()
    assert starts["derived"]["block"] == bench.heads("pr-1")["derived"].decode()
    for form in ("text", "md", "html"):
        said = bench("plan", "-b", "pr-1", "--format", form)
        assert "in branch pr-1" in said
        for each in starts.values():
            place = f"#{each['sequence_number']} {each['block'][-8:]} of the {each['of']}"
            assert f"after block {place}" in said.replace("\\", "")


def test_a_plan_of_a_rebuild_says_which_history_it_replaces(bench: Bench) -> None:
    block = bench.heads()["derived"].decode()
    said = bench("plan", "-b", "pr-1", "--allow", "rebuild:derived+")
    assert "instead of the history up to block #" in said
    assert f"{block[-8:]} of the head" in said
    assert "      after block" not in said


def test_a_new_dataset_is_in_the_branch_only(bench: Bench) -> None:
    bench.derive("new", QUERY, "made")
    bench("apply", "-y", "-b", "pr-1")
    assert bench.values("new", "pr-1") == [1000, 2000, 3000] or bench.values("new", "pr-1")
    assert "new" not in bench.heads()
    assert "new" in bench("ls", "-b", "pr-1")
    assert "new" in names(plan_of(bench))  # still to be created on the head
    assert bench.program("log", "new").code == 1
    assert bench.program("log", "new", "-b", "pr-1").code == 0


def test_a_rebuild_in_a_branch_leaves_readers_of_the_head_undisturbed(bench: Bench) -> None:
    before = bench.heads(), bench.values("derived"), bench.values("leaf")
    bench("apply", "-y", "-b", "blue", "--allow", "rebuild:derived+")
    assert (bench.heads(), bench.values("derived"), bench.values("leaf")) == before
    rebuilt = bench.space().branches()["blue"]
    assert set(rebuilt) == {"derived", "leaf"}
    for name, each in rebuilt.items():
        assert str(each.base).encode() == before[0][name]
        assert each.head != each.base
    assert "No changes" in bench("plan")
    bench("verify", "--integrity")
    bench("verify", "--integrity", "-b", "blue")


def test_deletions_and_renames_wait_for_the_head_and_the_plan_says_so(bench: Bench) -> None:
    settings = bench.root / "odfbuild.yaml"
    settings.write_text(settings.read_text() + "  moved: {made: renamed}\n")
    (bench.root / "datasets" / "made.yaml").unlink()
    bench.derive("renamed", QUERY)
    bench.derive("reader", QUERY, "renamed")
    (bench.root / "datasets" / "leaf.yaml").unlink()
    bench.derive("derived", BY_100)
    plan = plan_of(bench, "-b", "pr-1")
    assert set(names(plan)) == {"derived"}
    waiting = {each["dataset"]: each["why"] for each in plan["branch"]["waiting"]}
    assert set(waiting) == {"renamed", "reader", "leaf"}
    text = bench("plan", "-b", "pr-1")
    for name, why in waiting.items():
        assert f"Not in this branch: {name} ({why})." in text
    before = bench.heads()
    bench("apply", "-y", "-b", "pr-1")
    assert bench.heads() == before
    said = bench("apply", "-y", "-b", "pr-1", "--allow", "delete:leaf", code=1)
    assert "error[E1105]" in said


def test_a_saved_plan_carries_its_branch_and_is_refused_in_another(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    bench("plan", "-b", "pr-1", "-o", "plan.json")
    assert "error[E1107]" in bench("apply", "-y", "plan.json", "-b", "pr-2", code=1)
    before = bench.heads()
    bench("apply", "-y", "plan.json")
    assert bench.heads() == before
    assert set(bench.space().branches()) == {"pr-1"}
    assert "moved since the plan was made" in bench("apply", "-y", "plan.json", code=5)
    bench("plan", "-o", "heads.json")
    assert "error[E1107]" in bench("apply", "-y", "heads.json", "-b", "pr-1", code=1)


def test_a_warm_plan_stays_warm_while_one_goes_back_and_forth(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    for file in (bench.root / "datasets").iterdir():
        os.utime(file, (1, 1))  # what was written within two seconds has to be looked at again
    bench("apply", "-y", "-b", "pr-1")
    bench("plan")
    bench("plan", "-b", "pr-1")
    cache = bench.root / ".odfbuild"
    kept = {
        file: file.stat().st_mtime_ns for file in cache.rglob("*.bin") if "locks" not in file.parts
    }
    for _ in range(2):
        bench("plan")
        bench("plan", "-b", "pr-1")
    assert {file: file.stat().st_mtime_ns for file in kept} == kept


def test_runs_in_a_branch_are_no_runs_of_the_head(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1")
    shutil.rmtree(bench.root / "chains" / "derived" / "refs" / "pr-1", ignore_errors=True)
    assert "drift" not in bench("plan")
    assert "0 of history" in bench("drift", "derived")


def test_an_apply_in_a_branch_publishes_nothing_and_leaves_no_notes(bench: Bench) -> None:
    settings = bench.root / "odfbuild.yaml"
    shared = bench.root / "shared"
    settings.write_text(
        settings.read_text()
        + f"  repositories: {{acme: {{url: '{shared}'}}}}\n"
        + "  publish: [{match: [derived], to: acme}]\n"
    )
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1")
    assert not shared.exists() or not any(shared.iterdir())


def test_a_broker_is_not_polled_in_a_branch(bench: Bench) -> None:
    file = bench.root / "datasets" / "root.yaml"
    text = file.read_text().replace("name: root", "name: broker")
    fetch = "kind: Mqtt\n        host: localhost\n        port: 1883\n        topics: [{path: a}]"
    glob = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName"
    assert glob in text
    file.with_name("broker.yaml").write_text(text.replace(glob, fetch))
    said = bench("plan", "-b", "pr-1", code=1)
    assert "error[E1106]" in said
    assert "--exclude broker" in said
    bench("plan", "-b", "pr-1", "--exclude", "broker")


def test_a_reset_in_a_branch_moves_its_reference_only(bench: Bench) -> None:
    before = bench.heads()
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1")
    bench("reset", "derived", "-y", "-b", "pr-1", "--to", before["derived"].decode())
    assert bench.heads() == before
    assert bench.heads("pr-1")["derived"] == before["derived"]


def test_the_python_interface_works_in_a_branch(bench: Bench) -> None:
    from odfbuild import BranchError, Project

    bench.derive("derived", BY_100)
    with pytest.raises(BranchError) as raised:
        Project(bench.root, branch="pr-1").workspace()
    assert raised.value.code == "E1102"
    before = bench.heads()
    project = Project(bench.root, branch="pr-1")
    plan = project.plan()
    assert plan.branch is not None and plan.branch.name == "pr-1"
    assert [each.name for each in project.apply(plan).datasets] == ["derived"]
    assert bench.heads() == before
    with pytest.raises(BranchError) as raised:
        Project(bench.root).apply(plan)
    assert raised.value.code == "E1107"
    for refused in (project.collect, project.commit_chains):
        with pytest.raises(BranchError) as raised:
            refused()
        assert raised.value.code == "E1103"


def files(bench: Bench) -> set[str]:
    """Files of all datasets but those that say what branches are."""
    found = (bench.root / "chains").rglob("*")
    return {str(each) for each in found if each.is_file() and "branches" not in each.parts}


def test_a_branch_takes_no_more_room_than_its_own_blocks_and_slices(bench: Bench) -> None:
    before = files(bench)
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "pr-1")
    new = sorted(each.removeprefix(f"{bench.root}/chains/") for each in files(bench) - before)
    # The changed query: a block, and the reference to it.
    assert [each.rpartition("/")[0] for each in new] == ["derived/blocks", "derived/refs"]
    bench("apply", "-y", "-b", "blue", "--allow", "rebuild:derived+")
    more = [each.rpartition("/")[0] for each in files(bench) - before]
    assert more.count("derived/data".join([f"{bench.root}/chains/", ""])) == 1
    assert not any(
        each.startswith((f"{bench.root}/chains/root", f"{bench.root}/chains/made")) for each in more
    )


READING = [
    ("tail", "derived"),
    ("log", "derived"),
    ("ls", "--json"),
    ("explain", "derived"),
    ("import", "derived"),
    ("decode", "BLOCK"),
    ("diff",),
    ("status",),
]


@pytest.mark.parametrize("command", READING, ids=lambda each: each[0])
def test_a_reading_command_shows_datasets_as_they_are_in_the_branch(
    bench: Bench, command: tuple[str, ...]
) -> None:
    bench.derive("derived", BY_100)
    bench.derive("new", QUERY, "derived")
    bench("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived+")
    head = bench.heads("pr-1")["new"].decode()
    arguments = [head[-12:] if each == "BLOCK" else each for each in command]
    on_head, in_branch = (bench.program(*arguments, *more) for more in ((), ("-b", "pr-1")))
    assert in_branch.code == 0, in_branch.err
    assert in_branch.out != on_head.out
    assert bench.program(*arguments).out == on_head.out


@pytest.mark.parametrize(
    "command",
    [
        ("graph",),
        ("freshness",),
        ("corrections", "derived", "--since", "2100-01-01T00:00:00Z"),
        ("render", "derived"),
        ("validate",),
        ("lint",),
        ("drift",),
        ("verify", "--integrity"),
        ("watermark", "show", "derived"),
        ("watermark", "late", "derived"),
        ("key", "status"),
        ("docs", "build", "--out", "site"),
        ("test",),
    ],
    ids=lambda each: " ".join(each[:2]),
)
def test_a_command_works_in_a_branch(bench: Bench, command: tuple[str, ...]) -> None:
    bench.derive("derived", BY_100)
    bench.derive("new", QUERY, "derived")
    bench("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived+")
    before = bench.heads()
    bench(*command, "-b", "pr-1")
    assert bench.heads() == before
