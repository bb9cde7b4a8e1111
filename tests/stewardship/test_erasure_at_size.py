"""A thousand of ten thousand persons are erased: no file anywhere has a value of theirs."""

from __future__ import annotations

import contextlib
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.personal.shop import machine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow(reason="ten thousand persons, ten increments, three formats of tables"),
]

PERSONS, ERASED, DAYS = 10_000, 1_000, 10
GONE, STAYS = "forgotten", "remembered"
"""What stands in all personal values of those who are erased, and of the others."""

SETTINGS = """\
kind: Project
version: 1
content:
  name: shop
  storage: ../storage
  repositories: {acme: {url: ../acme}}
  publish: [{match: ["*"], to: acme}]
  personal:
    - {match: [customers, contacts], columns: [email], subject: customer_id}
    - {match: [orders, contacts], columns: [address], subject: customer_id}
    - {match: [domains], disclose: [domain]}
  tables:
    - {match: [contacts], format: parquet, location: "../tables/parquet"}
    - {match: [contacts], format: delta, name: contacts_delta, location: "../tables/delta"}
    - match: [contacts]
      format: kartothek
      name: contacts_kartothek
      location: "../tables/kartothek"
"""
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: "../source/{name}-*.csv", order: ByName}}
      read:
        kind: Csv
        header: true
        schema: [{columns}]
      merge: {merge}
"""
ROOTS = {
    "customers": (
        "event_time TIMESTAMP, customer_id BIGINT, email STRING, country STRING",
        "{kind: Snapshot, primaryKey: [customer_id]}",
    ),
    "orders": (
        "event_time TIMESTAMP, order_id BIGINT, customer_id BIGINT, address STRING",
        "{kind: Ledger, primaryKey: [order_id]}",
    ),
}
DERIVED = {
    "contacts": "SELECT o.event_time, o.order_id, c.customer_id, c.email, o.address"
    " FROM orders o JOIN customers c ON o.customer_id = c.customer_id",
    "domains": "SELECT max(event_time) AS event_time, split_part(email, '@', 2) AS domain,"
    " count(*) AS persons FROM customers GROUP BY split_part(email, '@', 2)",
}
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""


def word(person: int) -> str:
    return GONE if person % (PERSONS // ERASED) == 0 else STAYS


def arrive(source: Path, day: int) -> None:
    """All customers, a twentieth of whom moved to another address, and new orders."""
    time = f"2024-03-{day:02d}T00:00:00Z"
    mails = (
        f"{time},{p},{word(p)}{p}{day if (p + day) % 20 == 0 else ''}@d{p % 7}.org,c{p % 5}"
        for p in range(PERSONS)
    )
    orders = (
        f"{time},{day * 2_000 + n},{(day * 977 + n * 13) % PERSONS},"
        f"{word((day * 977 + n * 13) % PERSONS)} street {n}"
        for n in range(2_000)
    )
    for name, lines in {"customers": mails, "orders": orders}.items():
        header = ",".join(each.split()[0] for each in ROOTS[name][0].split(", "))
        (source / f"{name}-{day:02d}.csv").write_text("\n".join([header, *lines]) + "\n")


def holders(folder: Path, text: str) -> Iterator[Path]:
    """Files with a text: in their bytes, in values of Parquet, or in what Git packed."""
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.is_symlink():
            continue
        data = file.read_bytes()
        if ".git/objects/" in str(file):
            with contextlib.suppress(zlib.error):  # of what is no object; packs are unpacked before
                data = zlib.decompress(data)
        if data[:4] == b"PAR1":
            table = pq.read_table(file)
            data += repr(table.to_pydict()).encode()
        if text.encode() in data:
            yield file


def others(project: Project) -> list[tuple[object, ...]]:
    """Records of persons that stay, of the derivative with their values."""
    rows = project.records("contacts")
    assert rows is not None
    columns = ("op", "order_id", "customer_id", "email", "address")
    found = zip(*(rows[each].to_pylist() for each in columns), strict=True)
    return sorted(row for row in found if word(row[2]) == STAYS)


def test_no_file_has_a_value_of_an_erased_person(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    machine(tmp_path / "machine", monkeypatch, more="show: true\n    publish: true")
    root, source = tmp_path / "shop", tmp_path / "source"
    (root / "datasets").mkdir(parents=True)
    source.mkdir()
    (root / "odfbuild.yaml").write_text(SETTINGS)
    for name, (columns, merge) in ROOTS.items():
        text = ROOT.format(name=name, columns=columns, merge=merge)
        (root / "datasets" / f"{name}.yaml").write_text(text)
    for name, query in DERIVED.items():
        inputs = ", ".join(f"{{datasetRef: {each}}}" for each in ROOTS if f" {each}" in query)
        text = DERIVATIVE.format(name=name, inputs=inputs, query=query)
        (root / "datasets" / f"{name}.yaml").write_text(text)
    odfbuild = Program(root, monkeypatch, capsys)

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (root / ".gitignore").write_text("/.odfbuild*\n")
    for day in range(1, DAYS + 1):
        arrive(source, day)
        odfbuild.ok("apply", "-y")
        git("add", "-A")
        git("commit", "-qm", f"Day {day}")
    # What is tried in a branch has encrypted values, too.
    file = root / "datasets" / "contacts.yaml"
    kept = file.read_text()
    file.write_text(
        kept.replace(
            "o.customer_id = c.customer_id", "o.customer_id = c.customer_id WHERE o.order_id > 5000"
        )
    )
    odfbuild.ok("apply", "-y", "-b", "try", "--allow", "rebuild:contacts")
    file.write_text(kept)

    consumer = tmp_path / "consumer"
    (consumer / "datasets").mkdir(parents=True)
    (consumer / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent:\n  name: consumer\n"
        "  repositories: {acme: {url: ../acme}}\n"
    )
    theirs = Program(consumer, monkeypatch, capsys)
    theirs.ok("pull", "acme/contacts", "--as", "contacts")

    with Project(root) as project:
        before = others(project)
        assert any(GONE in str(row) for row in project.records("contacts")["email"].to_pylist())
    blocks = {f: f.read_bytes() for f in (root / "chains").rglob("blocks/*")}
    persons = tmp_path / "persons"
    persons.write_text("".join(f"{p}\n" for p in range(PERSONS) if word(p) == GONE))
    dry = odfbuild.ok("erase", "--file", str(persons), "--dry-run", "--json").data
    done = odfbuild.ok("erase", "--file", str(persons), "-y", "--json").data
    assert done["destroyed"] == ERASED
    assert dry["datasets"] == done["datasets"]
    odfbuild.ok("apply", "-y")
    odfbuild.ok("push", "--to", "acme")
    theirs.ok("pull")
    git("add", "-A")
    git("commit", "-qm", "Erased")
    git("repack", "-adq")
    pack = next((root / ".git" / "objects" / "pack").glob("*.pack"))
    with pack.open("rb") as packed:
        (tmp_path / "unpacked").mkdir()
        subprocess.run(["git", "init", "-q", "."], cwd=tmp_path / "unpacked", check=True)
        subprocess.run(
            ["git", "unpack-objects", "-q"], cwd=tmp_path / "unpacked", stdin=packed, check=True
        )

    left = [each for each in holders(tmp_path, GONE) if source not in each.parents]
    assert left == []
    tables = list(holders(tmp_path / "tables", STAYS))
    assert {each.relative_to(tmp_path / "tables").parts[0] for each in tables} == {
        "parquet",
        "delta",
        "kartothek",
    }
    assert {f: f.read_bytes() for f in blocks} == blocks
    with Project(root) as project:
        assert others(project)[: len(before)] == before or set(before) <= set(others(project))
    for program in (odfbuild, theirs):
        program.ok("verify")

    arrive(source, DAYS + 1)
    odfbuild.ok("apply", "-y")
    left = [each for each in holders(tmp_path, GONE) if source not in each.parents]
    assert left == []
