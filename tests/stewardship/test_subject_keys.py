"""Keys of subjects: one for each, whoever asks first, and none once it was destroyed."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, get_ident

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild import Project
from odfbuild.errors import PersonalDataError
from odfbuild.store.subject_keys import KeyStore
from odfbuild.store.wrapping_keys import SecretWrapping, wrapping_key
from tests.stewardship.killed import lives

SUBJECTS = [f"customer {number}" for number in range(600)]


def store(folder: Path, wrapping: str = "wrapping", stated: tuple[bytes, ...] = ()) -> KeyStore:
    return KeyStore("keys", wrapping_key(wrapping, folder), folder, lambda: stated)


def test_each_subject_has_a_key_of_its_own_that_stays(tmp_path: Path) -> None:
    made = store(tmp_path).ensure(SUBJECTS)
    assert len(set(made.values())) == len(SUBJECTS)
    assert {len(each) for each in made.values()} == {64}
    assert store(tmp_path).keys([*SUBJECTS, "nobody"]) == made
    assert store(tmp_path).ensure(SUBJECTS) == made


def test_the_store_names_no_subject_and_shows_no_key(tmp_path: Path) -> None:
    made = store(tmp_path).ensure(SUBJECTS[:20])
    written = b"".join(f.read_bytes() for f in (tmp_path / "keys").rglob("*") if f.is_file())
    assert not [each for each in made if each.encode() in written or made[each] in written]


def test_a_hundred_thousand_keys_take_256_files(tmp_path: Path) -> None:
    subjects = [str(number) for number in range(100_000)]
    assert len(store(tmp_path).ensure(subjects)) == 100_000
    assert len(list((tmp_path / "keys" / "keys").iterdir())) == 256


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ensure", "destroy", "keys", "erased", "rotate"]),
            st.sets(st.sampled_from(["ada", "bob", "", "é", "x" * 5_000])),
        ),
        max_size=12,
    )
)
def test_what_was_destroyed_never_comes_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    known: dict[str, bytes] = {}
    gone: set[str] = set()
    for number, (step, subjects) in enumerate(steps):
        keys = store(folder, f"wrapping-{max([0, *_rotations(steps[:number])])}")
        match step:
            case "ensure":
                found = keys.ensure(subjects)
                assert found.keys() == subjects - gone
                known |= {each: key for each, key in found.items() if each not in known}
                assert found == {each: known[each] for each in found}
            case "destroy":
                had = {each for each in subjects if each in known and each not in gone}
                assert keys.destroy(subjects) == len(had)
                gone |= subjects
            case "keys":
                alive = {e: k for e, k in known.items() if e in subjects and e not in gone}
                assert keys.keys(subjects) == alive
            case "erased":
                assert keys.erased(subjects) == subjects & gone
            case "rotate":
                new = SecretWrapping(f"wrapping-{number + 1}", folder)
                new.prepare()
                keys.rotate(new)


def _rotations(steps: list[tuple[str, set[str]]]) -> Iterator[int]:
    return (number + 1 for number, (step, _) in enumerate(steps) if step == "rotate")


def _ensure(folder: Path, number: int, told: multiprocessing.Queue) -> None:
    order = SUBJECTS[number * 7 :] + SUBJECTS[: number * 7]
    told.put(store(folder).ensure(order))


def test_several_processes_end_with_the_same_keys(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    workers = [context.Process(target=_ensure, args=(tmp_path, n, told)) for n in range(4)]
    store(tmp_path).wrapping.prepare()
    for each in workers:
        each.start()
    found = [told.get(timeout=120) for _ in workers]
    for each in workers:
        each.join(timeout=120)
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("step", ["ensure", "destroy", "rotate"])
def test_a_kill_at_any_write_leaves_keys_that_hold(tmp_path: Path, step: str) -> None:
    begun = store(tmp_path)
    before = begun.ensure(SUBJECTS[:50])
    for number in range(12):
        lives(number, lambda: _do(tmp_path, step))
        now = store(tmp_path, _now(tmp_path) if step == "rotate" else "wrapping")
        found = now.keys(SUBJECTS[:50])
        assert found == {each: before[each] for each in found}
        assert step == "destroy" or found == before
    if step == "destroy":
        store(tmp_path).destroy(SUBJECTS[:10])
        assert store(tmp_path).keys(SUBJECTS[:10]) == {}
        left = b"".join(f.read_bytes() for f in (tmp_path / "keys").rglob(".pending-*"))
        assert left == b""


def _now(folder: Path) -> str:
    header = (folder / "keys" / "header.json").read_text()
    return "another" if '"another"' in header else "wrapping"


def _do(folder: Path, step: str) -> None:
    keys = store(folder, _now(folder) if step == "rotate" else "wrapping")
    if step == "ensure":
        keys.ensure(SUBJECTS)
    elif step == "destroy":
        keys.destroy(SUBJECTS[:10])
    else:
        new = SecretWrapping("another", folder)
        new.prepare()
        keys.rotate(new)


def test_an_older_copy_of_the_store_brings_no_key_back(tmp_path: Path) -> None:
    keys = store(tmp_path)
    made = keys.ensure(["ada", "bob"])
    shutil.copytree(tmp_path / "keys", tmp_path / "backup")
    stated = (keys.name_of("ada"),)
    keys.destroy(["ada"])
    shutil.rmtree(tmp_path / "keys")
    shutil.copytree(tmp_path / "backup", tmp_path / "keys")
    again = store(tmp_path, stated=stated)
    assert again.keys(["ada", "bob"]) == {"bob": made["bob"]}
    assert again.ensure(["ada", "bob"]) == {"bob": made["bob"]}
    assert again.erased(["ada", "bob"]) == {"ada"}


def test_another_wrapping_key_opens_nothing(tmp_path: Path) -> None:
    store(tmp_path).ensure(["ada"])
    other = store(tmp_path, "other")
    other.wrapping.prepare()
    with pytest.raises(PersonalDataError, match="does not open") as raised:
        other.keys(["ada"])
    assert raised.value.code == "E1622"


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_wrapping_key_has_to_be_there_and_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("WRAPPING", secret)
    with pytest.raises(PersonalDataError) as raised:
        store(tmp_path, "env:WRAPPING").ensure(["ada"])
    assert raised.value.code == "E1622"
    monkeypatch.setenv("WRAPPING", "x" * 40)
    assert store(tmp_path, "env:WRAPPING").ensure(["ada"])


def test_a_wrapping_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    store(tmp_path).ensure(["ada"])
    (tmp_path / "wrapping").chmod(0o644)
    with pytest.raises(PersonalDataError, match="others may read it"):
        store(tmp_path).keys(["ada"])


@pytest.mark.parametrize("change", ["cut", "flipped", "header"])
def test_damage_is_told_and_gives_no_key(tmp_path: Path, change: str) -> None:
    keys = store(tmp_path)
    keys.ensure(["ada"])
    [file] = (tmp_path / "keys" / "keys").iterdir()
    data = file.read_bytes()
    if change == "cut":
        file.write_bytes(data[:-3])
    elif change == "flipped":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        (tmp_path / "keys" / "header.json").write_text("{}")
    with pytest.raises(PersonalDataError) as raised:
        store(tmp_path).keys(["ada"])
    assert raised.value.code == "E1623"


def test_a_place_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a file")
    with pytest.raises(PersonalDataError) as raised:
        store(tmp_path).ensure(["ada"])
    assert raised.value.code == "E1621"


def test_a_key_management_service_wraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto.server")
    botocore = pytest.importorskip("botocore.session")
    server = moto.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }.items():
            monkeypatch.setenv(name, value)
        kms = botocore.get_session().create_client("kms")
        ids = [kms.create_key()["KeyMetadata"]["KeyId"] for _ in range(2)]
        made = store(tmp_path, f"kms:{ids[0]}").ensure(["ada"])
        keys = store(tmp_path, f"kms:{ids[0]}")
        assert keys.keys(["ada"]) == made
        keys.rotate(wrapping_key(f"kms:{ids[1]}", tmp_path))
        assert store(tmp_path, f"kms:{ids[1]}").keys(["ada"]) == made
        missing = store(tmp_path, "kms:alias/none")
        with pytest.raises(PersonalDataError):
            missing.rotate(missing.wrapping)
    finally:
        server.stop()


# --- The machine's configuration ---


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Project]:
    """Makes a project on a machine whose configuration says that of personal data."""

    def made(personal: str) -> Project:
        root = tmp_path / "project"
        (root / "datasets").mkdir(parents=True)
        (root / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent:\n  name: people\n")
        machine = tmp_path / "machine.yaml"
        machine.write_text(f"kind: Machine\nversion: 1\ncontent:\n  personal: {personal}\n")
        monkeypatch.setenv("ODFBUILD_CONFIG", str(machine))
        return Project(root)

    return made


@pytest.mark.parametrize(
    ("personal", "subjects", "code"),
    [
        ("{}", ["ada"], "E1627"),
        ("{keys: keys}", ["ada"], "E1620"),
        ("{keys: keys, wrapping: wrapping}", [], "E1628"),
    ],
)
def test_what_erase_needs_is_told(
    project: Callable[[str], Project], personal: str, subjects: list[str], code: str
) -> None:
    with pytest.raises(PersonalDataError) as raised:
        project(personal).erase(*subjects)
    assert raised.value.code == code


def test_a_project_that_declares_nothing_personal_is_told_so(
    project: Callable[[str], Project],
) -> None:
    made = project("{}")
    with pytest.raises(PersonalDataError) as raised:
        made.erase("ada")
    assert any("declares no columns" in each for each in raised.value.notes)
    settings = made.root / "odfbuild.yaml"
    entry = "  personal: [{match: [people], columns: [name], subject: person}]\n"
    settings.write_text(settings.read_text() + entry)
    with pytest.raises(PersonalDataError) as raised:
        made.erase("ada")
    assert (raised.value.code, raised.value.notes) == ("E1627", ())


def test_a_person_without_records_can_be_erased_and_keys_be_wrapped_anew(
    project: Callable[[str], Project], tmp_path: Path
) -> None:
    made = project("{keys: keys, wrapping: wrapping}")
    store(tmp_path).ensure(["ada", "bob"])
    assert made.plan_erasure("ada", "eve").with_keys == 1
    assert made.erase("ada", "eve").keys == 1
    made.rotate_wrapping_key("second")
    assert store(tmp_path, "second").erased(["ada", "bob", "eve"]) == {"ada", "eve"}
    with pytest.raises(PersonalDataError):
        store(tmp_path).keys(["bob"])


def test_keys_lie_in_a_store_of_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto.server")
    botocore = pytest.importorskip("botocore.session")
    pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }.items():
            monkeypatch.setenv(name, value)
        botocore.get_session().create_client("s3").create_bucket(Bucket="keys")

        def opened() -> KeyStore:
            return KeyStore("s3://keys/people", wrapping_key("wrapping", tmp_path), tmp_path)

        made = opened().ensure(SUBJECTS[:40])
        assert opened().keys(SUBJECTS) == made
        assert opened().destroy(SUBJECTS[:10]) == 10
        assert opened().ensure(SUBJECTS[:40]).keys() == set(SUBJECTS[10:40])
    finally:
        server.stop()


def test_a_wrapping_key_is_made_once_though_many_need_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys" / "wrapping-key"
    every = Barrier(4)
    exists = Path.exists
    waited: set[int] = set()

    def found(path: Path, **options: bool) -> bool:
        there = exists(path, **options)
        if path == file and get_ident() not in waited:
            waited.add(get_ident())
            every.wait(60)  # all of them look before one makes it
        return there

    monkeypatch.setattr(Path, "exists", found)

    def made(_: int) -> bytes:
        SecretWrapping(str(file), tmp_path).prepare()
        return file.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(made, range(4))}) == 1
