"""`key`: which private keys are here, and how they get to another machine."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.cli.real import BINARY, ENVIRONMENT, read_terminal

SECRET = "correct horse battery staple"


@pytest.fixture
def odfbuild(odfbuild: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Two datasets with chains, and so with keys."""
    odfbuild.apply()
    monkeypatch.setenv("ODFBUILD_KEYS_PASSPHRASE", SECRET)
    return odfbuild


def places(odfbuild: Program) -> dict[str, str | None]:
    return {
        each["name"]: each["private_key"] for each in odfbuild.ok("key", "status", "--json").data
    }


def keys(odfbuild: Program) -> dict[str, bytes]:
    folder = odfbuild.root / ".odfbuild-keys"
    return {file.name: file.read_bytes() for file in folder.glob("fed01*")}


def lose(odfbuild: Program) -> None:
    shutil.rmtree(odfbuild.root / ".odfbuild-keys")


def test_status_tells_whose_key_is_here_and_from_where(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(odfbuild.root / ".odfbuild-keys")
    assert all(each and each.startswith(folder) for each in places(odfbuild).values())
    assert "private key here" not in odfbuild.ok("key", "status").out
    odfbuild.ok("key", "export", "root", "--out", "../keys.json")
    lose(odfbuild)
    assert places(odfbuild) == {"derived": None, "root": None}
    assert "2 datasets have no private key here" in odfbuild.ok("key", "status").out
    monkeypatch.setenv("ODFBUILD_KEYS", str(odfbuild.root.parent / "keys.json"))
    assert places(odfbuild) == {"derived": None, "root": "ODFBUILD_KEYS"}
    assert "1 dataset has no private key here" in odfbuild.ok("key", "status").out


def test_all_keys_survive_a_lost_machine(odfbuild: Program) -> None:
    before = keys(odfbuild)
    said = odfbuild.ok("key", "export", "--out", "../keys.json")
    assert said.out == "Wrote ../keys.json: 2 private keys.\n"
    assert (odfbuild.root / "../keys.json").stat().st_mode & 0o777 == 0o600
    lose(odfbuild)
    said = odfbuild.ok("key", "import", "../keys.json")
    assert said.out == "Imported 2 private keys: derived, root.\n"
    assert keys(odfbuild) == before
    folder = odfbuild.root / ".odfbuild-keys"
    assert {each.stat().st_mode & 0o777 for each in folder.glob("fed01*")} == {0o600}
    said = odfbuild.ok("key", "import", "../keys.json")
    assert said.out == "2 private keys were here already: derived, root.\n"


def test_one_key_is_exported_and_the_keys_of_others_are_told_by_their_did(
    odfbuild: Program,
) -> None:
    odfbuild.ok("key", "export", "root", "--out", "../one.json")
    lose(odfbuild)
    shutil.rmtree(odfbuild.root / "chains")
    said = odfbuild.ok("key", "import", "../one.json", "--json").data
    assert [(each["name"], bool(each["private_key"])) for each in said["imported"]] == [
        (None, True)
    ]
    assert "(none here)" in odfbuild.ok("key", "status").out


def test_what_is_not_here_cannot_be_exported(odfbuild: Program) -> None:
    lose(odfbuild)
    for selection in (["root", "derived"], []):
        said = odfbuild("key", "export", *selection, "--out", "../keys.json")
        assert said.code == 1
        assert said.err.count("error[E1089]") == max(1, len(selection))
        assert "odfbuild key import FILE" in said.err
    assert not (odfbuild.root / "../keys.json").exists()


def test_an_export_replaces_no_file(odfbuild: Program) -> None:
    file = odfbuild.root / "mine.json"
    file.write_text("mine")
    said = odfbuild("key", "export", "--out", "mine.json")
    assert (said.code, "error[E0910]" in said.err) == (1, True)
    assert file.read_text() == "mine"


def test_a_passphrase_comes_from_a_file_or_the_environment_and_is_never_missing(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.ok("key", "export", "--out", "a.json")
    (odfbuild.root / "secret").write_text(SECRET + "\n")
    monkeypatch.delenv("ODFBUILD_KEYS_PASSPHRASE")
    odfbuild.ok("key", "import", "a.json", "--passphrase-file", "secret")
    for arguments in (("export", "--out", "b.json"), ("import", "a.json")):
        said = odfbuild("key", *arguments)
        assert (said.code, "error[E1087]" in said.err) == (1, True)
    (odfbuild.root / "other").write_text("other")
    said = odfbuild("key", "import", "a.json", "--passphrase-file", "other")
    assert (said.code, "error[E1086]" in said.err) == (1, True)
    (odfbuild.root / "other").write_text("\n")
    assert odfbuild("key", "import", "a.json", "--passphrase-file", "other").code == 64
    assert odfbuild("key", "import", "a.json", "--passphrase-file", "none").code == 64


def test_a_person_types_a_passphrase_and_nobody_sees_it(odfbuild: Program) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BINARY, "key", "export", "--out", "typed.json"],
        cwd=odfbuild.root,
        env=ENVIRONMENT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    for question in (b"Passphrase: ", b"Repeat for confirmation: "):
        while not shown.endswith(question):
            shown += os.read(ours, 1000)
        os.write(ours, SECRET.encode() + b"\n")
    shown += b"".join(iter(lambda: read_terminal(ours), b""))
    os.close(ours)
    assert process.wait(60) == 0, shown.decode()
    assert SECRET.encode() not in shown
    odfbuild.ok("key", "import", "typed.json")


def test_a_wrong_key_in_place_of_another_is_neither_used_nor_replaced(odfbuild: Program) -> None:
    odfbuild.ok("key", "export", "--out", "keys.json")
    first, second = sorted((odfbuild.root / ".odfbuild-keys").glob("fed01*"))
    first.write_bytes(second.read_bytes())
    said = odfbuild("key", "import", "keys.json")
    assert (said.code, "error[E1088]" in said.err) == (1, True)
    assert first.read_bytes() == second.read_bytes()


def test_doctor_names_datasets_whose_key_is_missing(odfbuild: Program) -> None:
    def identities() -> dict[str, str]:
        checks = odfbuild("doctor", "--json").data["checks"]
        return next(each for each in checks if each["name"] == "identities")

    assert identities()["status"] == "ok"
    lose(odfbuild)
    found = identities()
    assert found["status"] == "warn"
    assert "derived, root" in found["detail"]
    assert "odfbuild key import" in found["help"]


def test_no_definition_reads_a_key_and_no_program_gets_one(odfbuild: Program) -> None:
    from odfbuild.errors import IngestError
    from odfbuild.ingest.process import run_to_file
    from odfbuild.ingest.secrets import check_template, resolve

    for name in ("ODFBUILD_KEYS", "ODFBUILD_KEYS_PASSPHRASE"):
        for meets in (check_template, resolve):
            with pytest.raises(IngestError, match="private keys"):
                meets(f"https://example.org/?q=${{{{ env.{name} }}}}")
    target = odfbuild.root / "env"
    run_to_file(["env"], target, folder=odfbuild.root, seconds=9, most_bytes=1 << 20)
    assert "PATH=" in target.read_text()
    assert "ODFBUILD_KEYS" not in target.read_text()


def test_the_python_interface_does_the_same(odfbuild: Program) -> None:
    project = Project(odfbuild.root)
    assert project.export_keys(odfbuild.root / "keys.json", SECRET, "root") == 1
    assert project.import_keys(odfbuild.root / "keys.json", SECRET) == []
    lose(odfbuild)
    (key,) = project.import_keys(odfbuild.root / "keys.json", SECRET)
    assert [each.place for each in project.private_keys()] == [None, key.place]
    bundle = json.loads((odfbuild.root / "keys.json").read_text())
    assert bundle["datasets"] == [str(key.id)]
    assert Path(key.place or "").name == key.id.multibase
