"""References of branches: what they name, who moves them, and what is left of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.errors import BranchError, ChainError, StaleHeadError
from odfbuild.odf.model import DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import BranchName, Limit
from odfbuild.store.dataset import MARKER, DatasetStore
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, create, info, workspace


def branch(root: Path, name: str = "pr-1", limit: Limit | None = None) -> Workspace:
    return Workspace(
        root / "chains", root / ".odfbuild-keys", root / ".odfbuild", None, None, name, limit
    )


def append(store: DatasetStore, text: str) -> Multihash:
    return store.append(store.head(), (info(text),), NOW)


def keys(space: Workspace) -> list[str]:
    return sorted(each.name for each in space.keys.iterdir() if not each.name.startswith("."))


@pytest.mark.parametrize("name", ["pr-12", "a", "0.1_x", "a" * 64, "head2", "lock"])
def test_a_name_of_letters_digits_and_some_signs_is_a_branch(name: str) -> None:
    assert BranchName.parse(name) == name


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        ("", "pr-12"),
        ("head", "pr-12"),
        ("HEAD", "pr-12"),
        ("..", "pr-12"),
        ("name/..", "name"),
        ("a/../../b", "a-.-.-b"),
        ("Feature/Taxi", "feature-taxi"),
        ("a..b", "a.b"),
        (".pending-x", "pending-x"),
        ("x.lock", "x"),
        ("x.", "x"),
        ("-x", "x"),
        ("a" * 65, "a" * 64),
        ("ä b", "b"),
    ],
)
def test_any_other_name_is_refused_with_one_that_works(name: str, proposal: str) -> None:
    with pytest.raises(BranchError) as raised:
        BranchName.parse(name)
    assert raised.value.code == "E1101"
    assert f"'{proposal}'" in (raised.value.help or "")
    assert BranchName.parse(proposal) == proposal


def test_what_is_appended_in_a_branch_moves_its_reference_and_no_head(tmp_path: Path) -> None:
    main = create(workspace(tmp_path), "a", info("x"))
    base = main.head()
    new = append(branch(tmp_path).dataset("a"), "in the branch")
    assert main.head() == main.main_head() == base
    assert main.branch_head("pr-1") == branch(tmp_path).dataset("a").head() == new
    assert (tmp_path / "chains" / "a" / "refs" / "pr-1").read_text() == str(new)
    found = workspace(tmp_path).branches()["pr-1"]["a"]
    assert (found.head, found.base, found.limit) == (new, base, None)


def test_a_branch_keeps_the_block_that_it_left_while_both_go_on(tmp_path: Path) -> None:
    main = create(workspace(tmp_path), "a", info("x"))
    base = main.head()
    append(branch(tmp_path).dataset("a"), "first")
    ahead = append(main, "on the head")
    second = append(branch(tmp_path).dataset("a"), "second")
    assert main.head() == ahead
    found = workspace(tmp_path).branches()["pr-1"]["a"]
    assert (found.head, found.base) == (second, base)


def test_each_dataset_is_what_the_branch_names_and_else_what_the_head_names(
    tmp_path: Path,
) -> None:
    space = workspace(tmp_path)
    a, b = create(space, "a", info("x")), create(space, "acme/b", info("x"))
    in_branch = branch(tmp_path)
    new = append(in_branch.dataset("a"), "y")
    create(in_branch, "acme/c", info("new"))
    heads = {name: text.decode() for name, text in branch(tmp_path).heads().items()}
    assert heads == {
        "a": str(new),
        "acme/b": str(b.head()),
        "acme/c": str(in_branch.dataset("acme/c").head()),
    }
    assert workspace(tmp_path).aliases() == ["a", "acme/b"]
    assert workspace(tmp_path).find("acme/c") is None
    assert workspace(tmp_path).projection("acme/c") is None
    assert branch(tmp_path).find("ACME/C") == "acme/c"
    a_there = branch(tmp_path).projections()["a"]
    assert a_there.head == new
    assert workspace(tmp_path).projections()["a"].head == a.head()
    assert branch(tmp_path, "other").aliases() == ["a", "acme/b"]


def test_projections_of_head_and_branches_are_kept_side_by_side(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for name in "abc":
        create(space, name, info("x"))
    workspace(tmp_path).projections()
    append(branch(tmp_path).dataset("a"), "y")
    branch(tmp_path).projections()
    of_head = tmp_path / ".odfbuild" / "projections.bin"
    of_branch = tmp_path / ".odfbuild" / "branches" / "pr-1" / "projections.bin"
    before = of_head.stat().st_mtime_ns, of_branch.stat().st_mtime_ns
    for _ in range(2):
        workspace(tmp_path).projections()
        branch(tmp_path).projections()
    assert (of_head.stat().st_mtime_ns, of_branch.stat().st_mtime_ns) == before
    assert of_branch.stat().st_size < of_head.stat().st_size


def test_two_branches_and_the_head_create_the_same_name_each_with_its_own_identity(
    tmp_path: Path,
) -> None:
    spaces = [branch(tmp_path, "one"), branch(tmp_path, "two"), workspace(tmp_path)]
    for space in spaces:
        create(space, "a", info("x"))
    identities = {space.projections()["a"].dataset_id for space in spaces}
    assert len(identities) == 3
    assert keys(spaces[0]) == sorted(each.multibase for each in identities)
    assert {each["a"].base for each in workspace(tmp_path).branches().values()} == {None}


def test_a_dataset_of_the_head_is_not_created_in_a_branch(tmp_path: Path) -> None:
    create(workspace(tmp_path), "a", info("x"))
    with pytest.raises(StaleHeadError):
        create(branch(tmp_path), "a", info("y"))


def test_names_that_differ_in_case_collide_across_branches(tmp_path: Path) -> None:
    create(branch(tmp_path, "one"), "taxi", info("x"))
    with pytest.raises(ChainError) as raised:
        create(workspace(tmp_path), "Taxi", info("x"))
    assert raised.value.code == "E0620"


def test_a_dataset_is_not_renamed_to_a_name_that_a_branch_uses(tmp_path: Path) -> None:
    create(branch(tmp_path), "new", info("x"))
    create(workspace(tmp_path), "old", info("x"))
    with pytest.raises(ChainError, match="in use in branches") as raised:
        workspace(tmp_path).rename("old", "new")
    assert "pr-1" in raised.value.notes[0]


def test_a_creation_that_died_is_cleared_without_harm_to_other_branches(tmp_path: Path) -> None:
    one = create(branch(tmp_path, "one"), "a", info("x"))
    identity = branch(tmp_path, "one").projections()["a"].dataset_id
    # Killed after its reference, before the marker went; and another one before its reference.
    for number, marker in enumerate((identity.multibase, "f" * 68)):
        (one.path / MARKER).write_text(marker)
        (tmp_path / ".odfbuild-keys" / ("f" * 68)).write_text("a key")
        two = create(branch(tmp_path, f"two-{number}"), "a", info("y"))
        assert two.head() is not None
        assert one.read_block(one.head() or Multihash(b"")) is not None
        assert identity.multibase in keys(workspace(tmp_path))
    assert "f" * 68 not in keys(workspace(tmp_path))


def test_a_branch_is_deleted_only_from_the_block_that_is_expected(tmp_path: Path) -> None:
    main = create(workspace(tmp_path), "a", info("x"))
    old = append(branch(tmp_path).dataset("a"), "y")
    new = append(branch(tmp_path).dataset("a"), "z")
    with pytest.raises(StaleHeadError):
        main.delete_branch("pr-1", old)
    assert workspace(tmp_path).branch_names() == {"pr-1"}
    main.delete_branch("pr-1", new)
    assert workspace(tmp_path).branches() == {}
    assert not list((main.path / "info" / "branches").iterdir())
    assert main.head() is not None


def test_the_name_of_a_dataset_that_only_a_deleted_branch_had_is_free(tmp_path: Path) -> None:
    store = create(branch(tmp_path), "a", info("x"))
    head = store.branch_head("pr-1")
    assert head is not None
    workspace(tmp_path).dataset("a").delete_branch("pr-1", head)
    before = keys(workspace(tmp_path))
    create(workspace(tmp_path), "a", info("y"))
    assert len(keys(workspace(tmp_path))) == 1
    assert keys(workspace(tmp_path)) != before


def test_deleting_the_branch_of_a_dataset_that_was_promoted_keeps_its_key(tmp_path: Path) -> None:
    store = create(branch(tmp_path), "a", info("x"))
    head = store.branch_head("pr-1")
    assert head is not None
    main = workspace(tmp_path).dataset("a")
    main.swap_head(None, head)
    main.delete_branch("pr-1", head)
    assert not (main.path / MARKER).exists()
    assert len(keys(workspace(tmp_path))) == 1


def test_a_limit_is_known_from_before_the_reference_on(tmp_path: Path) -> None:
    create(workspace(tmp_path), "a", info("x"))
    append(branch(tmp_path, limit=Limit(sample="10%")).dataset("a"), "y")
    append(branch(tmp_path).dataset("a"), "z")
    assert workspace(tmp_path).branches()["pr-1"]["a"].limit == Limit(sample="10%")


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"base": 1}', '{"base": null}'])
def test_e1104_when_what_is_known_of_a_branch_is_missing_or_damaged(
    tmp_path: Path, content: str | None
) -> None:
    store = create(branch(tmp_path), "a", info("x"))
    file = store.path / "info" / "branches" / "pr-1"
    assert json.loads(file.read_text())["base"] is None
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    with pytest.raises(BranchError) as raised:
        workspace(tmp_path).branches()
    assert raised.value.code == "E1104"


def test_an_unknown_branch_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    create(branch(tmp_path, "taxi-zones"), "a", info("x"))
    branch(tmp_path, "taxi-zones").check_branch()
    workspace(tmp_path).check_branch()
    with pytest.raises(BranchError) as raised:
        branch(tmp_path, "taxi-zone").check_branch()
    assert raised.value.code == "E1102"
    assert raised.value.notes == ("branches: taxi-zones",)
    assert raised.value.help == "did you mean 'taxi-zones'?"


def _steps(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[None]:
    """Die at the step `at` of those that write."""
    real = os.replace
    done = 0

    def replace(*arguments: object, **named: object) -> None:
        nonlocal done
        done += 1
        if done == at:
            raise KeyboardInterrupt
        real(*arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        patch.setattr(Path, "replace", lambda staged, target: replace(staged, target))  # noqa: PLW0108
        yield


@pytest.mark.parametrize("at", range(1, 4))
def test_a_commit_to_a_branch_that_is_cut_off_leaves_nothing_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    main = create(workspace(tmp_path), "a", info("x"))
    for _ in _steps(monkeypatch, at):
        with pytest.raises(KeyboardInterrupt):
            append(branch(tmp_path).dataset("a"), "y")
    assert workspace(tmp_path).branches() == {}
    new = append(branch(tmp_path).dataset("a"), "y")
    assert workspace(tmp_path).branches()["pr-1"]["a"].head == new
    assert main.head() == workspace(tmp_path).branches()["pr-1"]["a"].base


def test_a_kind_of_dataset_in_a_branch_needs_no_head(tmp_path: Path) -> None:
    space = branch(tmp_path)
    store = space.create("a", DatasetKind.Derivative, (info("x"),), NOW)
    assert store.main_head() is None
    assert (store.path / "refs").exists()
    assert not (store.path / "refs" / "head").exists()
    assert space.resolve(space.projections()["a"].dataset_id) == "a"
