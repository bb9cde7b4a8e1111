"""Answers that others can check, in a real Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from odfbuild.odf.query_proof import Commitment, flaw_of_request, sign
from odfbuild.store.keys import signing_key
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

QUERY = "SELECT d.id, d.value FROM derived AS d JOIN root USING (id)"


@pytest.fixture
def odfbuild(odfbuild: Program) -> Program:
    """A project with three records, and ten times as much of them."""
    odfbuild.apply()
    return odfbuild


def test_a_stranger_checks_an_answer_with_the_chains_alone(
    odfbuild: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = odfbuild.ok("sql", QUERY, "--prove", "answer.json")
    proof = json.loads((odfbuild.root / "answer.json").read_text())
    signer = proof["proof"]["verificationMethod"]
    assert said.out == f"Wrote answer.json: 3 rows, signed by {signer}.\n"
    assert proof["output"]["data"] == [{"id": n, "value": 10 * n} for n in (1, 2, 3)]
    # The same key signs the next one; nobody else may read it, and Git does not see it.
    keys = odfbuild.root / ".odfbuild-keys"
    assert (keys / "signer.pem").stat().st_mode & 0o077 == 0
    odfbuild.ok("sql", "SELECT id FROM root WHERE id = 1", "--prove", "other.json")
    other = json.loads((odfbuild.root / "other.json").read_text())
    assert other["proof"]["verificationMethod"] == signer

    # More records come, and the answer stays one about the blocks that it was read from.
    (odfbuild.root / "data" / "more.csv").write_text("event_time,id,value\n2024-01-04,4,4\n")
    odfbuild.apply()
    shutil.copytree(odfbuild.root, tmp_path / "clone", ignore=shutil.ignore_patterns("*-keys"))
    stranger = Program(tmp_path / "clone", monkeypatch, capsys)
    # Nor does it matter when it is asked.
    head = proof["input"]["datasets"][0]["blockHash"]
    stranger.ok("sql", QUERY, "--as-of", head, "--prove", "again.json")
    again = json.loads((stranger.root / "again.json").read_text())
    assert (again["input"], again["output"]) == (proof["input"], proof["output"])
    assert again["proof"]["verificationMethod"] != signer
    lines = stranger.ok("verify", "--proof", "answer.json", "--signer", signer).out.splitlines()
    assert lines[0] == "answer.json holds: 3 rows, the same when asked again."
    assert lines[1].split() == ["signed", "by", signer]
    assert [line.split()[-2] for line in lines[2:]] == ["derived", "root"]
    data = stranger.ok("verify", "--proof", "answer.json", "--json").data
    assert data["holds"] and data["rows"] == 3 and data["query"] == QUERY
    assert Project(stranger.root).check_proof(proof).signer == signer


def test_history_is_proven_with_its_operations(odfbuild: Program) -> None:
    odfbuild.ok("sql", "SELECT op, id FROM root", "--history", "--prove", "answer.json")
    proof = json.loads((odfbuild.root / "answer.json").read_text())
    assert proof["output"]["data"][0] == {"id": 1, "op": "+A"}
    odfbuild.ok("verify", "--proof", "answer.json")


def _set(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(proof: dict[str, Any]) -> None:
        inner: Any = proof
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to

    return change


OTHER_DID = "did:odf:fed01" + "07" * 32
OTHER_BLOCK = "f1620" + "07" * 32
WRONG = {
    "rows changed": (
        _set("output", "data", 0, "value", to=11),
        False,
        3,
        "the rows in answer.json",
    ),
    "query changed": (
        _set("input", "query", to="SELECT 1"),
        False,
        3,
        "its request is not the one",
    ),
    "queries below it changed": (_set("subQueries", to=[1]), False, 3, "its queries are not those"),
    "another signer": (
        _set(
            "proof",
            "verificationMethod",
            to="did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN",
        ),
        False,
        3,
        "is not signed by the signer it names",
    ),
    "a liar signs": (_set("output", "data", 0, "value", to=11), True, 3, "gives other rows"),
    "no such dataset": (_set("input", "datasets", 0, "id", to=OTHER_DID), True, 1, "no chain here"),
    "no such block": (
        _set("input", "datasets", 0, "blockHash", to=OTHER_BLOCK),
        True,
        1,
        "does not have",
    ),
    "another dialect": (
        _set("input", "queryDialect", to="SqlFlink"),
        True,
        1,
        "cannot run here",
    ),
    "a part is missing": (lambda proof: proof.pop("commitment"), False, 1, "no 'commitment'"),
    "no JSON object": (lambda proof: None, False, 1, "is not a proof"),
}


@pytest.fixture(scope="module")
def proven(
    spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tiny, dict[str, Any]]:
    tiny = Tiny.fresh(tmp_path_factory.mktemp("proof") / "p")
    with pytest.MonkeyPatch.context() as patch:
        share(spark_engine, patch)
        project = Project(tiny.root)
        project.apply(project.plan())
        return tiny, project.prove(QUERY)


@pytest.mark.parametrize("name", WRONG)
def test_a_proof_that_does_not_hold_is_refused_with_the_reason(
    name: str,
    proven: tuple[Tiny, dict[str, Any]],
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny, document = proven
    change, signs, code, message = WRONG[name]
    proof = json.loads(json.dumps(document))
    change(proof)
    if signs:
        commitment = Commitment.to(proof["input"], proof["output"], proof["subQueries"])
        proof["commitment"] = commitment.data
        proof["proof"] = sign(commitment, signing_key(tiny.root / ".odfbuild-keys")).data
        assert flaw_of_request(proof) is None
    text = "[]" if name == "no JSON object" else json.dumps(proof)
    (tiny.root / "answer.json").write_text(text)
    share(spark_engine, monkeypatch)
    said = Program(tiny.root, monkeypatch, capsys)("verify", "--proof", "answer.json")
    assert (said.code, said.out) == (code, "")
    assert message in said.err
    if name == "a liar signs":
        assert 'it says: {"id": 1, "value": 11}' in said.err
        assert 'the chains say: {"id": 1, "value": 10}' in said.err


def test_only_an_answer_that_comes_again_can_be_proven(odfbuild: Program) -> None:
    for query, said in (
        ("SELECT id FROM root LIMIT 1", "LIMIT and OFFSET keep any of the rows"),
        ("SELECT id, id FROM root", "two columns called 'id'"),
    ):
        refused = odfbuild("sql", query, "--prove", "answer.json")
        assert refused.code == 1
        assert said in refused.err
    assert not (odfbuild.root / "answer.json").exists()
    assert odfbuild("sql", QUERY, "--prove", "a.json", "-n", "1").code == 64
    assert odfbuild("verify", "root", "--proof", "a.json").code == 64
    assert odfbuild("verify", "--signer", "did:key:z6").code == 64


def test_damaged_data_is_told_before_a_proof_is_believed(odfbuild: Program) -> None:
    odfbuild.ok("sql", QUERY, "--prove", "answer.json")
    file = next((odfbuild.root / "chains" / "root" / "data").glob("f1620*"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes() + b"X")
    said = odfbuild("verify", "--proof", "answer.json")
    assert said.code == 3
    assert "error[E0812]" in said.err


def test_a_key_that_is_none_is_told(odfbuild: Program) -> None:
    (odfbuild.root / ".odfbuild-keys" / "signer.pem").write_text("nothing")
    said = odfbuild("sql", QUERY, "--prove", "answer.json")
    assert said.code == 1
    assert "error[E0931]" in said.err
