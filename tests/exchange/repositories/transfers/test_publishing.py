"""`publish` in odfbuild.yaml, and `plan --refresh`: what apply pushes, what repositories say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.exchange.repositories.two_projects import Pair


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pair:
    made = Pair.in_folder(tmp_path, monkeypatch, capsys)
    file = made.theirs.root / "odfbuild.yaml"
    file.write_text(
        f"{file.read_text()}  repositories: {{acme: {{url: ../acme}}}}\n"
        "  publish: [{match: [roo*], to: acme}]\n"
    )
    return made


def heads(pair: Pair, dataset: str = "root") -> tuple[bytes, bytes]:
    """What `theirs` has, and what the repository has."""
    ours = pair.theirs.root / "chains" / dataset / "refs/head"
    there = pair.repository / dataset / "refs/head"
    return ours.read_bytes(), there.read_bytes() if there.exists() else b""


def test_plan_shows_what_apply_publishes_without_asking_anybody(pair: Pair) -> None:
    assert "Apply publishes to acme what is new there of root." in pair.they("plan").out
    plan = json.loads(pair.they("plan", "--json").out)
    assert plan["publications"] == [{"dataset": "root", "repository": "acme"}]
    assert not pair.repository.exists()


def test_apply_publishes_matching_datasets_after_its_commits(pair: Pair) -> None:
    pair.theirs.arrive(2)
    said = pair.they("apply", "-y").out
    assert "Published:\n  new" in said and "root" in said
    assert heads(pair)[0] == heads(pair)[1] and not (pair.repository / "derived").exists()
    assert "Published: 1 dataset, nothing new." in pair.they("apply", "-y").out


def test_apply_publishes_what_an_earlier_one_left_also_without_anything_to_apply(
    pair: Pair,
) -> None:
    assert "No changes." in (said := pair.they("apply", "-y").out)
    assert "Published:\n  new" in said
    assert heads(pair)[0] == heads(pair)[1]


def test_no_publish_leaves_repositories_alone(pair: Pair) -> None:
    pair.theirs.arrive(2)
    pair.they("apply", "-y", "--no-publish")
    assert not pair.repository.exists()


def test_a_failed_publication_is_told_with_its_dataset_and_commits_stay(pair: Pair) -> None:
    pair.repository.write_text("a file, where a folder should be")
    pair.theirs.arrive(2)
    done = pair.theirs_said("apply", "-y", "--json")
    assert done.code == 4
    data = done.data
    assert [each["status"] for each in data["datasets"]] == ["committed", "committed"]
    [published] = data["published"]
    assert (published["name"], published["status"]) == ("root", "failed")
    assert published["error"]["code"].startswith("E10")
    pair.repository.unlink()
    assert "Published:\n  new" in pair.they("apply", "-y").out
    assert heads(pair)[0] == heads(pair)[1]


def test_a_saved_plan_publishes_what_was_reviewed(pair: Pair) -> None:
    pair.theirs.arrive(2)
    pair.they("plan", "-o", "plan.json")
    assert json.loads((pair.theirs.root / "plan.json").read_text())["publications"]
    assert "Published:\n  new" in pair.they("apply", "-y", "plan.json").out


def test_a_pattern_of_publish_that_no_dataset_matches_is_an_error(pair: Pair) -> None:
    file = pair.theirs.root / "odfbuild.yaml"
    file.write_text(file.read_text().replace("roo*", "rot*"))
    said = pair.theirs_said("validate")
    assert said.code == 1 and "this entry of `publish` does nothing" in said.err


def test_refresh_tells_how_many_blocks_and_records_a_pull_would_bring(pair: Pair) -> None:
    pair.they("apply", "-y")
    pair.reads("acme/root")
    assert pair.we("pull", "acme/root").code == 0
    pair.theirs.arrive(2)
    pair.they("apply", "-y")
    before = (pair.ours / "chains/acme/root/refs/head").read_bytes()
    assert "new block" not in pair.we("plan").out
    said = pair.we("plan", "--refresh").out
    assert "< acme/root" in said and "1 new block with 1 record: odfbuild pull acme/root" in said
    plan = json.loads(pair.we("plan", "--refresh", "--json").out)
    assert [(each["name"], each["blocks"], each["records"]) for each in plan["news"]] == [
        ("acme/root", 1, 1)
    ]
    without = json.loads(pair.we("plan", "--json").out)
    assert without["news"] is None and without["plan_digest"] == plan["plan_digest"]
    assert (pair.ours / "chains/acme/root/refs/head").read_bytes() == before
    assert pair.we("plan", "--refresh", "-o", "plan.json").code == 0
    assert "1 new block with 1 record" in pair.we("show", "plan.json").out


def test_refresh_goes_on_when_one_repository_does_not_answer(pair: Pair) -> None:
    pair.they("apply", "-y")
    pair.settings("  external: {far: 'http://127.0.0.1:9/far'}\n")
    pair.pin()
    pair.reads("acme/root")
    said = pair.we("plan", "--refresh")
    assert said.code == 0
    assert "! far" in said.out and "; a pull would fail: " in said.out
    assert "+ mine" in said.out


def test_refresh_says_what_a_first_pull_would_bring(pair: Pair) -> None:
    pair.they("apply", "-y")
    pair.reads("acme/root")
    said = pair.we("plan", "--refresh").out
    assert "! acme/root  not pulled yet; 4 new blocks with 3 records: odfbuild pull" in said
    [news] = json.loads(pair.we("plan", "--refresh", "--json").out)["news"]
    assert (news["blocks"], news["records"]) == (4, 3)


def test_data_of_an_own_dataset_comes_from_where_it_is_published(pair: Pair) -> None:
    pair.they("apply", "-y")
    shutil.rmtree(pair.theirs.root / "chains/root/data")
    said = pair.they("tail", "root", "--json")
    assert [each["id"] for each in said.data] == [1, 2, 3]


def test_readers_of_a_history_that_was_rewritten_are_refused_until_they_are_rebuilt(
    pair: Pair,
) -> None:
    pair.they("apply", "-y")
    pair.reads("acme/root")
    pair.reads("mine", "further")
    assert pair.we("pull", "acme/root").code == 0
    assert pair.we("apply", "-y").code == 0
    pair.they("reset", "root", "-y")
    pair.they("apply", "-y", "--no-publish", "--allow", "rebuild:derived")
    again = pair.theirs_said("apply", "-y")
    assert again.code == 1 and "error[E1028]" in again.err  # nobody replaces a history unasked
    pair.they("push", "root", "--allow", "reset:root")
    assert "; a pull would fail: fork" in pair.we("plan", "--refresh").out
    assert pair.we("pull", "acme/root").code == 3
    assert pair.we("pull", "acme/root", "--allow", "reset:acme/root").code == 0
    said = pair.we("plan")
    assert said.code == 1 and "error[E0306]" in said.out
    assert "--allow rebuild:mine+" in said.out
    assert "= acme/root  pinned at block #" in said.out
    assert pair.we("apply", "-y", "--allow", "rebuild:mine+").code == 0
    assert "No changes." in pair.we("plan").out
    assert pair.we("verify", "mine", "further").code == 0


def test_a_clone_without_the_data_cannot_publish_it_and_says_so(pair: Pair) -> None:
    shutil.rmtree(pair.theirs.root / "chains/root/data")
    said = pair.theirs_said("apply", "-y")
    assert said.code == 1 and "error[E1030]" in said.err
    assert not (pair.repository / "root/refs/head").exists()


def test_a_pulled_dataset_that_gets_a_name_later_is_moved_by_hand(pair: Pair) -> None:
    pair.they("apply", "-y")
    assert pair.we("pull", "acme/root").code == 0
    pair.settings("  external: {prices: acme/root}\n")
    pair.reads("prices")
    assert "odfbuild pull prices" in pair.we("plan").out
    said = pair.we("pull", "prices")
    assert said.code == 1 and "error[E1024]" in said.err and "docs/rename.md" in said.err
    (pair.ours / "chains/acme/root").rename(pair.ours / "chains/prices")
    assert "= prices  pinned at block #" in pair.we("plan").out
    assert pair.we("pull", "prices").code == 0
    assert pair.we("apply", "-y").code == 0
    assert pair.we("verify").code == 0
