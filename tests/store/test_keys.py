"""Private keys of datasets: files, bundles, and those that the environment gives."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from odfbuild.errors import EnvironmentProblem
from odfbuild.odf.identity import DatasetId
from odfbuild.store.key_bundle import KeyBundle
from odfbuild.store.keys import BUNDLE, PASSPHRASE, PrivateKeys, new_pair, read_bundle

PAIRS = dict(new_pair() for _ in range(3))
FIRST, SECOND, THIRD = PAIRS
SECRET = "correct horse"
SEALED = KeyBundle.seal({FIRST: PAIRS[FIRST], SECOND: PAIRS[SECOND]}, SECRET).encode()


def code(error: pytest.ExceptionInfo[EnvironmentProblem]) -> str:
    return error.value.code


def test_a_bundle_gives_back_its_keys_to_whoever_has_the_passphrase() -> None:
    bundle = KeyBundle.parse(SEALED, "b")
    assert bundle.datasets == (FIRST, SECOND)
    assert bundle.open(SECRET) == {FIRST: PAIRS[FIRST], SECOND: PAIRS[SECOND]}
    for pem in PAIRS.values():
        assert pem.splitlines()[1] not in SEALED


def test_another_passphrase_or_another_byte_opens_nothing() -> None:
    with pytest.raises(EnvironmentProblem, match="does not open") as error:
        KeyBundle.parse(SEALED, "b").open("wrong")
    assert code(error) == "E1086"
    for field in ("salt", "nonce", "keys"):
        changed = json.loads(SEALED)
        data = bytearray(b64decode(changed[field]))
        data[5] ^= 1
        changed[field] = b64encode(data).decode()
        with pytest.raises(EnvironmentProblem) as error:
            KeyBundle.parse(json.dumps(changed).encode(), "b").open(SECRET)
        assert code(error) == "E1086"
    named = {**json.loads(SEALED), "datasets": [str(THIRD)]}
    with pytest.raises(EnvironmentProblem) as error:
        KeyBundle.parse(json.dumps(named).encode(), "b").open(SECRET)
    assert code(error) == "E1086"


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b"[" * 9999, SEALED[:-9], SEALED.replace(b"=", b"!")],
    ids=["nothing", "a list", "an object", "no text", "deep", "cut off", "no base64"],
)
def test_what_is_no_bundle_is_said_to_be_none(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(data)
    with pytest.raises(EnvironmentProblem) as error:
        read_bundle(file)
    assert code(error) == "E1085"


def test_a_file_comes_before_the_bundle_of_the_environment(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    environ = {BUNDLE: SEALED.decode(), PASSPHRASE: SECRET}
    keys = PrivateKeys(folder, environ)
    assert keys.held() == {FIRST, SECOND}
    assert (keys.place(FIRST), keys.place(THIRD)) == (BUNDLE, None)
    assert (keys.pem(FIRST), keys.pem(THIRD)) == (PAIRS[FIRST], None)
    assert PrivateKeys(folder, {}).add({FIRST: PAIRS[FIRST], THIRD: PAIRS[THIRD]})
    assert keys.held() == set(PAIRS)
    assert keys.place(FIRST) == str(folder / FIRST.multibase)


def test_the_variable_names_a_file_or_holds_the_bundle(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(SEALED)
    keys = PrivateKeys(tmp_path, {BUNDLE: str(file), PASSPHRASE: SECRET})
    found = keys.key(FIRST)
    assert found is not None
    assert found.public_key().public_bytes_raw() == FIRST.key
    with pytest.raises(EnvironmentProblem) as error:
        PrivateKeys(tmp_path, {BUNDLE: str(tmp_path / "none")}).key(FIRST)
    assert code(error) == "E1085"


def test_the_passphrase_is_needed_only_for_a_key_of_the_bundle(tmp_path: Path) -> None:
    keys = PrivateKeys(tmp_path, {BUNDLE: SEALED.decode()})
    assert keys.key(THIRD) is None
    assert keys.place(FIRST) == BUNDLE
    with pytest.raises(EnvironmentProblem) as error:
        keys.key(FIRST)
    assert code(error) == "E1087"


def test_keys_are_added_once_for_their_owner_only_and_none_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    keys = PrivateKeys(folder, {})
    assert keys.add({FIRST: PAIRS[FIRST]}) == [FIRST]
    assert keys.add({FIRST: PAIRS[FIRST], SECOND: PAIRS[SECOND]}) == [SECOND]
    files = [folder / FIRST.multibase, folder / SECOND.multibase]
    assert [each.stat().st_mode & 0o777 for each in (folder, *files)] == [0o700, 0o600, 0o600]
    files[0].write_bytes(b"damaged")
    with pytest.raises(EnvironmentProblem) as error:
        keys.add({FIRST: PAIRS[FIRST], THIRD: PAIRS[THIRD]})
    assert code(error) == "E1088"
    assert files[0].read_bytes() == b"damaged"
    assert not (folder / THIRD.multibase).exists()


@pytest.mark.parametrize("data", [PAIRS[SECOND], b"", b"-----BEGIN"])
def test_a_key_of_another_dataset_or_no_key_is_not_used(data: bytes, tmp_path: Path) -> None:
    keys = PrivateKeys(tmp_path, {})
    with pytest.raises(EnvironmentProblem) as error:
        keys.add({FIRST: data})
    assert code(error) == "E1088"
    tmp_path.chmod(0o700)
    (tmp_path / FIRST.multibase).write_bytes(data)
    with pytest.raises(EnvironmentProblem) as error:
        keys.key(FIRST)
    assert code(error) == "E1088"


def test_other_files_are_no_keys(tmp_path: Path) -> None:
    for name in (".gitignore", "signer.pem", "fed01", FIRST.multibase.upper()):
        (tmp_path / name).write_bytes(b"")
    assert PrivateKeys(tmp_path, {}).held() == set()
    assert DatasetId.parse(str(FIRST)) == FIRST
