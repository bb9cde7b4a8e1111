import stat
from pathlib import Path

import pytest

from odfbuild.errors import ChainError, EnvironmentProblem, IntegrityError, StaleHeadError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, Seed
from odfbuild.odf.multihash import Multihash
from odfbuild.store import creation
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.keys import new_pair
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, create, info, workspace


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def test_a_new_dataset_has_a_fresh_identity_whose_private_key_stays_here(space: Workspace) -> None:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_private_key,
    )

    ids = []
    for alias in ("one", "two"):
        store = create(space, alias, info("x"))
        seed = list(store.walk(store.head()))[-1][1].event
        assert isinstance(seed, Seed)
        key_file = space.keys / seed.dataset_id.multibase
        public = load_pem_private_key(key_file.read_bytes(), None).public_key()
        assert public.public_bytes(Encoding.Raw, PublicFormat.Raw) == seed.dataset_id.key
        ids.append(seed.dataset_id)
    assert ids[0] != ids[1]


def test_private_keys_are_for_their_owner_and_hidden_from_git(space: Workspace) -> None:
    create(space, "ds")
    assert stat.S_IMODE(space.keys.stat().st_mode) == 0o700
    assert (space.keys / ".gitignore").read_text() == "*\n"
    assert {stat.S_IMODE(f.stat().st_mode) for f in space.keys.iterdir()} == {0o600}


def test_a_key_folder_that_others_may_enter_is_refused(space: Workspace) -> None:
    space.keys.mkdir(mode=0o755)
    space.keys.chmod(0o755)
    with pytest.raises(EnvironmentProblem) as caught:
        create(space, "ds")
    assert "chmod 700" in str(caught.value.help)
    assert space.aliases() == []
    assert not (space.state / "ds").exists()


def test_git_sees_chains_but_neither_data_nor_keys_nor_cache(space: Workspace) -> None:
    import subprocess

    root = space.state.parent
    subprocess.run(["git", "init", "-q", root], check=True)
    for alias in ("ds", "data", "acme/data", "acme/checkpoints"):
        store = create(space, alias, info("x"))
        for kind in ("data", "checkpoints"):
            staged = root / "staged"
            staged.write_bytes(alias.encode())
            store.put_object(kind, staged, Multihash.sha3_256(alias.encode()))
        (store.path / "blocks" / ".pending-1234").write_bytes(b"")
    space.projections()
    with space.claim(["ds"]):
        pass
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    kinds = {line.rsplit("/", 1)[0] for line in listed}
    chains = {
        f"chains/{alias}/{part}"
        for alias in ("ds", "data", "acme/data", "acme/checkpoints")
        for part in ("blocks", "refs", "info")
    }
    assert kinds == chains | {"chains"}
    assert [line for line in listed if line.startswith("chains/.")] == ["chains/.gitignore"]


def test_the_cache_folder_says_what_it_is(space: Workspace) -> None:
    space.projections()
    create(space, "ds")
    space.projections()
    assert (space.cache / ".gitignore").read_text() == "*\n"
    assert (space.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f")


def test_datasets_are_listed_with_and_without_account(space: Workspace) -> None:
    for alias in ("b.c", "acme/x", "a"):
        create(space, alias)
    (space.state / "unfinished" / "blocks").mkdir(parents=True)
    (space.state / "not_a_name").mkdir()
    assert space.aliases() == ["a", "acme/x", "b.c"]
    assert list(space.projections()) == ["a", "acme/x", "b.c"]
    assert (space.dataset("acme/x").path / "info" / "alias").read_text() == "acme/x"


def test_case_of_aliases_is_kept_and_does_not_count(space: Workspace) -> None:
    created = create(space, "NY.Flights")
    assert space.dataset("ny.flights").head() == created.head()
    assert space.dataset("ny.flights") is space.dataset("NY.Flights")
    assert space.projection("ny.FLIGHTS") is not None
    assert space.aliases() == ["NY.Flights"]
    with pytest.raises(ChainError) as caught:
        create(space, "ny.flights")
    assert caught.value.code == "E0620"


@pytest.mark.parametrize("text", ["../outside", "a/b/c", "", "with space", "/etc"])
def test_what_is_no_alias_is_no_dataset(space: Workspace, text: str) -> None:
    create(workspace(space.state), "outside")
    assert space.find(text) is None
    assert space.projection(text) is None
    with pytest.raises(ValueError, match="not a dataset name"):
        space.dataset(text)


def test_two_folders_that_differ_only_in_case_are_refused(space: Workspace) -> None:
    import shutil

    store = create(space, "ds")
    shutil.copytree(store.path, space.state / "DS")
    with pytest.raises(ChainError) as caught:
        space.projections()
    assert "'DS'" in caught.value.message
    assert "'ds'" in caught.value.message


def test_a_dataset_that_exists_is_not_created_again(space: Workspace) -> None:
    head = create(space, "ds", info("first")).head()
    keys = sorted(space.keys.iterdir())
    with pytest.raises(StaleHeadError):
        create(space, "ds", info("second"))
    assert space.dataset("ds").head() == head
    assert sorted(space.keys.iterdir()) == keys


def test_a_dataset_cannot_lie_inside_another(space: Workspace) -> None:
    create(space, "acme")
    with pytest.raises(ChainError) as caught:
        create(space, "acme/x")
    assert caught.value.code == "E0621"


def test_an_account_folder_is_not_taken_for_an_unfinished_dataset(space: Workspace) -> None:
    for alias in ("acme/x", "acme/data"):
        create(space, alias)
    with pytest.raises(ChainError) as caught:
        create(space, "acme")
    assert caught.value.code == "E0622"
    assert space.aliases() == ["acme/data", "acme/x"]


def test_a_chain_that_lost_its_head_is_never_cleared_away(space: Workspace) -> None:
    store = create(space, "ds", info("precious"))
    (store.path / "refs" / "head").unlink()
    with pytest.raises(ChainError) as caught:
        create(space, "ds")
    assert caught.value.code == "E0622"
    assert len(list((store.path / "blocks").iterdir())) == 2


def test_a_creation_whose_events_break_a_rule_leaves_nothing_behind(space: Workspace) -> None:
    seed = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Root)
    with pytest.raises(ChainError):
        create(space, "ds", info("x"), seed)
    assert not (space.state / "ds").exists()
    assert [f.name for f in space.keys.iterdir()] == [".gitignore"]
    create(space, "ds", info("x"))


def test_a_creation_in_progress_is_not_disturbed(space: Workspace) -> None:
    store = DatasetStore(space.state / "ds", "ds")
    creation.prepare_state_folder(space.state)
    with creation.reserve(space.state, space.keys, store):
        identity, pem = new_pair()
        creation.mark(store, identity.multibase, ())
        creation.store_key(space.keys, identity, pem)
        with pytest.raises(StaleHeadError):
            create(space, "ds")
        assert (space.keys / identity.multibase).exists()
    create(space, "ds")
    assert not (space.keys / identity.multibase).exists()


def test_objects_enter_a_dataset_together_with_its_creation(
    space: Workspace, tmp_path: Path
) -> None:
    staged = [tmp_path / "a", tmp_path / "b"]
    for file in staged:
        file.write_bytes(file.name.encode())
    hashes = [Multihash.sha3_256(file.name.encode()) for file in staged]
    store = space.create(
        "ds",
        DatasetKind.Root,
        (),
        NOW,
        objects=[(staged[0], hashes[0])],
        checkpoints=[(staged[1], hashes[1])],
    )
    assert store.object_path("data", hashes[0]).read_bytes() == b"a"
    assert store.object_path("checkpoints", hashes[1]).read_bytes() == b"b"


def test_a_dataset_is_found_by_its_identity(space: Workspace) -> None:
    create(space, "one")
    create(space, "two")
    other = workspace(space.state.parent)
    for alias, projection in space.projections().items():
        assert space.resolve(projection.dataset_id) == alias
        assert other.resolve(projection.dataset_id) == alias
    assert space.resolve(DatasetId(bytes(32))) is None


def test_a_dataset_that_was_replaced_is_not_found_under_its_old_identity(space: Workspace) -> None:
    import shutil

    store = create(space, "one")
    old = space.projection("one").dataset_id
    assert space.resolve(old) == "one"
    shutil.rmtree(store.path)
    assert space.resolve(old) is None
    assert space.projection("one") is None
    create(space, "one")
    assert space.resolve(old) is None


def test_one_damaged_chain_is_an_error_with_its_name(space: Workspace) -> None:
    create(space, "good")
    bad = create(space, "bad", info("x"))
    bad.block_path(bad.head()).unlink()
    with pytest.raises(IntegrityError) as caught:
        space.projections()
    assert caught.value.dataset == "bad"
    assert space.projection("good") is not None
