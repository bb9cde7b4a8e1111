"""Make and check proofs of query results.

A proof is one JSON document: the query and the block at which each dataset was read, the rows, the
hashes of both, and a signature over these. Anyone who has the chains runs the query again at the
same blocks. Rows are in the order of their canonical JSON: an engine keeps no order that a query
does not ask for, and the same rows must have the same hash. Source: see `odf.query_proof`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import IntegrityError, PersonalDataError, PlanError
from odfbuild.inspect.ask import Question, Source, Sources, answered, at_heads, understand
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.query_proof import (
    Commitment,
    DatasetAt,
    Flaw,
    Proof,
    canonical_json,
    datasets_of,
    flaw_of_request,
    hash_of,
    sign,
)
from odfbuild.odf.records import records_to_data
from odfbuild.store.cache import project
from odfbuild.store.keys import signing_key
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.contract import EngineFactory, EngineResult
    from odfbuild.store.workspace import Workspace

DIALECT = "SqlSpark"
FORMAT = "JsonAoS"
"""Rows as objects, one for each."""


class VerifiedProof(Value):
    """A proof that holds: who signed it, what was read, how many rows came out."""

    signer: str
    query: str
    datasets: tuple[DatasetAt, ...]
    rows: int


def prove(
    workspace: Workspace,
    question: Question,
    factory: EngineFactory,
    sources: Sources | None = None,
    *,
    history: bool = False,
) -> dict[str, Any]:
    """Ask a question and sign the answer with the key of the key store, made when there is none.

    From `sources`, by default the datasets as they are now.
    Raises `QueryError`s, also E0506 for a query whose rows may be others the next time.
    """
    key = signing_key(workspace.keys)
    sources = sources or at_heads(workspace, question)
    _refuse_personal(workspace, sources)
    request = {
        "query": question.asked,
        "queryDialect": DIALECT,
        "dataFormat": FORMAT,
        "view": "history" if history else "state",
        "datasets": [
            DatasetAt(alias, each.state.dataset_id, each.state.head).data
            for alias, each in sources.items()
        ],
    }
    rows = _rows(workspace, question, sources, factory, history)
    output = {"data": rows, "dataFormat": FORMAT}
    commitment = Commitment.to(request, output, [])
    return {
        "input": request,
        "output": output,
        "subQueries": [],
        "commitment": commitment.data,
        "proof": sign(commitment, key).data,
    }


def _refuse_personal(workspace: Workspace, sources: Sources) -> None:
    for each in sources.values():
        if workspace.personal is not None and workspace.personal.has(each.name):
            raise PersonalDataError(
                f"answers from '{each.name}' cannot be proven: it has personal columns",
                code="E1609",
                dataset=each.name,
                notes=("what a reader sees of them depends on the machine",),
                help="ask a derivative without these columns",
            )


def read_proof(file: Path) -> Any:
    """The document in a file; `PlanError` E0819 when it cannot be read as JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise _no_proof(str(file), error.strerror or str(error)) from None
    except ValueError:
        raise _no_proof(str(file), "it is not JSON") from None


def check_proof(
    workspace: Workspace,
    document: Any,
    factory: EngineFactory,
    *,
    signer: str | None = None,
    name: str = "the proof",
) -> VerifiedProof:
    """Ask again what a proof (called `name` in messages) says was asked, and compare.

    What it was read from must be whole: blocks and objects are checked against their hashes first.

    With `signer`, a `did:key`, nobody else may have signed. `IntegrityError` E0817 when the proof
    does not hold, `PlanError` E0818 when it cannot be told here, E0819 when it is no proof.
    """
    try:
        flaw = flaw_of_request(document)
        datasets = datasets_of(document)
        signed_by = Proof.parse(document["proof"]).signer
        commitment = Commitment.parse(document["commitment"])
    except ValueError as error:
        raise _no_proof(name, str(error)) from None
    if flaw is not None:
        raise _broken(f"{name} {_WHY[flaw]}")
    if signer is not None and signer != signed_by:
        raise _broken(f"{name} is signed by {signed_by}, not by {signer}")
    output = document.get("output")
    if output is not None and hash_of(output) != commitment.output_hash:
        raise _broken(f"the rows in {name} are not those of its signed commitment")
    request = document["input"]
    query, history = _asked(request, name)
    sources = {each.alias: _source(workspace, each, name) for each in datasets}
    _check_whole(workspace, sources, name)
    question = understand(query, list(sources))
    rows = _rows(workspace, question, sources, factory, history)
    if hash_of({"data": rows, "dataFormat": FORMAT}) != commitment.output_hash:
        claimed = output.get("data") if isinstance(output, dict) else None
        raise _broken(f"the query gives other rows than {name} says", *_difference(claimed, rows))
    return VerifiedProof(signed_by, query, datasets, len(rows))


_WHY = {
    Flaw.INPUT_HASH: "was changed: its request is not the one of its signed commitment",
    Flaw.SUB_QUERIES_HASH: "was changed: its queries are not those of its signed commitment",
    Flaw.BAD_SIGNATURE: "is not signed by the signer it names",
}


def _asked(request: Mapping[str, Any], name: str) -> tuple[str, bool]:
    """The query, and whether it reads histories."""
    query, dialect = request.get("query"), request.get("queryDialect")
    form, view = request.get("dataFormat"), request.get("view")
    if not isinstance(query, str):
        raise _no_proof(name, "no 'query'")
    if dialect != DIALECT or form != FORMAT or view not in ("state", "history"):
        raise PlanError(
            f"{name} is about a query that cannot run here",
            code="E0818",
            notes=(f"dialect {dialect}, rows as {form}, records as {view}",),
            help="check it with the program that made it; its signature is valid",
        )
    return query, view == "history"


def _source(workspace: Workspace, at: DatasetAt, name: str) -> Source:
    alias = workspace.resolve(at.id)
    store = workspace.dataset(alias) if alias is not None else None
    head = store.head() if store is not None else None
    blocks = None if store is None or head is None else {hash for hash, _ in store.walk(head)}
    flaw = at.flaw(blocks)
    if flaw is Flaw.DATASET_NOT_FOUND or store is None or alias is None:
        raise PlanError(
            f"{name} reads '{at.alias}', which has no chain here",
            code="E0818",
            notes=(f"identity: {at.id}",),
            help="get the chains of the project that it comes from",
        )
    if flaw is not None:
        raise PlanError(
            f"{name} reads '{at.alias}' at a block that its chain here does not have",
            code="E0818",
            dataset=alias,
            notes=(f"block: {at.block}",),
            help="get the newest chains; if the block is not there either, the history was "
            "rewritten",
        )
    return Source(alias, project(store, at.block, None))


def _check_whole(workspace: Workspace, sources: Sources, name: str) -> None:
    for found in verify_integrity(workspace, sorted({each.name for each in sources.values()})):
        raise IntegrityError(
            f"'{found.dataset}', which {name} reads, is not what was committed",
            code=found.code,
            dataset=found.dataset,
            notes=(found.message,),
            help=found.help,
        )


def _rows(
    workspace: Workspace,
    question: Question,
    sources: Sources,
    factory: EngineFactory,
    history: bool,
) -> list[dict[str, Any]]:
    asked = answered(workspace, question, factory, sources, history=history, repeatable=True)
    with asked as found:
        return sorted(_read(found), key=canonical_json)


def _read(found: EngineResult) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert found.schema is not None
    tables = [pq.read_table(part) for part in found.parts]
    return records_to_data(pa.concat_tables(tables)) if tables else []


def _difference(claimed: Any, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The first row that only one side has, of each side."""
    if not isinstance(claimed, list):
        return ()
    here = {canonical_json(row): row for row in rows}
    there = {canonical_json(row): row for row in claimed}
    only_there = next((there[key] for key in sorted(there.keys() - here.keys())), None)
    only_here = next((here[key] for key in sorted(here.keys() - there.keys())), None)
    said = (("it says", only_there), ("the chains say", only_here))
    return tuple(
        f"{who}: {json.dumps(row, ensure_ascii=False)}" for who, row in said if row is not None
    )


def _broken(message: str, *notes: str) -> IntegrityError:
    return IntegrityError(
        message, code="E0817", notes=notes, help="do not rely on it; request a new one"
    )


def _no_proof(name: str, why: str) -> PlanError:
    return PlanError(
        f"{name} is not a proof: {why}",
        code="E0819",
        help="`odfbuild sql QUERY --prove FILE` writes one",
    )
