"""`verify` tells who vouches for a chain, and finds one that its owner did not sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.errors import EnvironmentProblem
from odfbuild.inspect.verify.check import Verdict, verify
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead, Statement
from odfbuild.odf.timestamp import Timestamp
from odfbuild.report.findings.verification import render_verdict, verdict_to_data
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.signed_heads import keep_statement
from odfbuild.store.storage import ObjectKind
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, create, info

TIME = Timestamp.parse("2026-01-01T00:00:00Z")


class Acme:
    """The repository that `root` came from."""

    def owner(self, store: DatasetStore) -> str | None:
        return "acme/root" if store.name == "root" else None

    def has(self, store: DatasetStore) -> bool:
        return False

    def fetch(self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]) -> None:
        raise AssertionError("nothing is missing")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """`root`, which came from `acme`, and `own`, of two blocks each."""
    space = Workspace(tmp_path / "chains", tmp_path / "keys", tmp_path / "cache", None, Acme())
    create(space, "root", info("a"))
    create(space, "own", info("b"))
    return space


def sign(space: Workspace, change: Callable[[Statement], Statement] = lambda said: said) -> None:
    """Lay a statement about the head of `root` beside it, changed before it is signed."""
    state = space.projection("root")
    assert state is not None
    key = space.private_keys.key(state.dataset_id)
    assert key is not None
    said = Statement(dataset_id=state.dataset_id, head=state.head, blocks=state.blocks, time=TIME)
    keep_statement(space.dataset("root"), SignedHead.sign(change(said), key))


def goes_on(space: Workspace) -> None:
    store = space.dataset("root")
    store.append(store.head(), (info("more"),), NOW)


def checked(space: Workspace) -> Verdict:
    return verify(space, ["own", "root"])


def lines(verdict: Verdict) -> list[str]:
    return render_verdict(["own", "root"], verdict).splitlines()


def test_a_signed_head_is_told_with_its_block_and_time(space: Workspace) -> None:
    sign(space)
    verdict = checked(space)
    assert lines(verdict) == [
        "Verified 2 datasets: all blocks and objects are intact.",
        "  root: signed with its key up to block #1, its head, 2026-01-01T00:00:00Z",
    ]
    own, root = verdict_to_data(["own", "root"], verdict)["signatures"]
    assert (own["dataset"], own["owner"], own["signed"], own["signer"]) == (
        "own",
        None,
        False,
        None,
    )
    assert (root["owner"], root["signed"], root["blocks"]) == ("acme/root", True, 2)
    assert root["signer"].startswith("did:key:z")
    assert root["block"] == str(space.dataset("root").head())


def test_blocks_behind_and_before_the_signed_one_are_told(space: Workspace) -> None:
    head = space.dataset("root").head()
    assert head is not None
    sign(space)
    goes_on(space)
    assert lines(checked(space))[1].endswith("; 1 later block unsigned")
    sign(space)
    store = space.dataset("root")
    store.swap_head(store.head(), head)
    assert lines(checked(space))[1].endswith("; 1 block of these not pulled yet")


def test_unsigned_is_told_of_datasets_of_others_alone(space: Workspace) -> None:
    assert lines(checked(space))[1:] == ["  root: unsigned"]


def test_of_many_datasets_those_that_are_signed_are_only_counted(space: Workspace) -> None:
    sign(space)
    [_, root] = checked(space).signatures
    many = [replace(root, dataset=f"d{n}") for n in range(300)]
    verdict = Verdict((), None, (*many, replace(root, dataset="old", since=2)))
    assert render_verdict(["d"], verdict).splitlines()[1:] == [
        "  old: signed with its key up to block #1, 2026-01-01T00:00:00Z; 2 later blocks unsigned",
        "  300 other datasets: signed with their keys up to their heads",
    ]


def test_a_chain_that_is_not_the_signed_one_is_found_though_all_hashes_fit(
    space: Workspace,
) -> None:
    sign(space)
    state = space.projection("root")
    assert state is not None
    store = space.dataset("root")
    seed = store.seed(state.head)
    store.append(state.head, (info("forged"),), NOW, onto=seed)
    [found] = checked(space).findings
    assert (found.dataset, found.code) == ("root", "E1084")
    assert "not the one that its owner signed" in found.message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: data.replace(b'"blocks": 2', b'"blocks": 1'), "E1081"),
        (lambda data: data[:-3], "E1080"),
    ],
    ids=["forged", "damaged"],
)
def test_a_statement_that_does_not_hold_is_a_finding(
    space: Workspace, change: Callable[[bytes], bytes], code: str
) -> None:
    sign(space)
    file = space.dataset("root").path / "info" / FILE
    file.write_bytes(change(file.read_bytes()))
    assert [(each.dataset, each.code) for each in checked(space).findings] == [("root", code)]


def test_a_statement_with_a_wrong_number_is_a_finding(space: Workspace) -> None:
    sign(space, lambda said: replace(said, blocks=1))
    assert [each.code for each in checked(space).findings] == ["E1084"]


def test_without_the_library_a_signature_is_not_passed_over(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odfbuild.extras.find_spec", lambda _: None)
    checked(space)
    monkeypatch.undo()
    sign(space)
    monkeypatch.setattr("odfbuild.extras.find_spec", lambda _: None)
    with pytest.raises(EnvironmentProblem) as error:
        checked(space)
    assert error.value.code == "E0903"
