"""Projects, plans and commands that are wrong."""

from __future__ import annotations

from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.model import MetadataBlock, SetInfo
from odfbuild.odf.timestamp import Timestamp
from tests.apply.tiny import QUERY, Tiny
from tests.cli.wrong.spoil import (
    DERIVED,
    FIXED,
    NO_SOURCE,
    POLL,
    POLLED,
    PUSHED,
    PUSHED_TO,
    ROOT,
    SCHEMA,
    Case,
    Spoil,
    altered,
    both,
    config,
    event,
    git,
    move_back,
    put,
    said,
    saved,
    swap,
    table,
    template,
)


def undefined(tiny: Tiny) -> None:
    """All chains stay, and nothing defines them any more."""
    for file in (tiny.root / "datasets").iterdir():
        file.unlink()


EARLY_BLOCK = """\
apiVersion: 1
kind: MetadataBlock
content:
  blockHash: 0b18484adf2a6c4a1d5e1b2ae1b0a2d9d1a06eb1d29a50dd0bcf1b7f1a2d5a8c
  prevBlockHash: 0b18484adf2a6c4a1d5e1b2ae1b0a2d9d1a06eb1d29a50dd0bcf1b7f1a2d5a8d
  systemTime: 2020-01-01T12:00:00.000Z
  outputSlice:
    hash: 0b18484adf2a6c4a1d5e1b2ae1b0a2d9d1a06eb1d29a50dd0bcf1b7f1a2d5a8e
    interval: "[2020-01-01T12:00:00.000Z, 2020-01-01T12:00:00.000Z]"
    numRecords: 10
"""


def pulled_root(tiny: Tiny) -> None:
    """The root was pulled from a repository, and nothing defines it."""
    for each in (tiny.root / "datasets").iterdir():
        each.unlink()
    (tiny.root / "chains/root/info/config").write_text(
        "kind: DatasetConfig\nversion: 1\ncontent:\n  pullAliases: [acme/root]\n  pushAliases: []\n"
    )


def deleted_and_made_again(tiny: Tiny) -> None:
    """A dataset is in the bin, and another one has its name."""
    definition = tiny.root / "datasets" / "derived.yaml"
    text = definition.read_text()
    definition.unlink()
    said("apply", "-y", "--allow", "delete:derived")(tiny)
    definition.write_text(text)
    said("apply", "-y")(tiny)


def block_of_version(version: int) -> bytes:
    """A block that says to be of another version of its format."""
    block = MetadataBlock(
        system_time=Timestamp(0), sequence_number=0, event=SetInfo(description="x")
    )
    return encode_block(block).replace(b"\x03\0\0\0", version.to_bytes(4, "little"), 1)


FILES = (
    Case("E0100", "-C / plan"),
    Case("E0101", "plan", put(ROOT, "kind: ["), fresh=True),
    Case("E0102", "plan", put(ROOT, "kind: A\nkind: B\n"), fresh=True),
    Case("E0103", "plan", put(ROOT, b"kind: \xff"), fresh=True),
    Case("E0104", "plan", config("  nothing: 1\n"), fresh=True),
    Case("E0105", "plan", swap("odfbuild.yaml", "name: tiny", "name: [1]"), fresh=True),
    Case("E0106", "plan", swap(ROOT, "  kind: Root\n", ""), fresh=True),
    Case("E0107", "plan", swap(ROOT, "kind: Root\n", "kind: Rooot\n"), fresh=True),
    Case("E0108", "plan", swap(DERIVED, "kind: Derivative", "kind: Root"), fresh=True),
    Case("E0109", "plan", put(ROOT, "kind: Nothing\n"), fresh=True),
    Case("E0110", "init .", fresh=True),
    Case("E0111", "plan", swap(DERIVED, "datasetRef: root", "name: root"), fresh=True),
    Case("E0114", "import root --write"),
    Case("E0115", "plan -e nowhere", config("  environments: {dev: {}}\n"), fresh=True),
    Case("E0116", "plan --var nothing=1", fresh=True),
    Case(
        "E0117",
        "plan -e dev",
        both(config("  environments: {dev: {}}\n"), put("vars/dev.yaml", "[1]\n")),
        fresh=True,
    ),
    Case(
        "E0118",
        "plan",
        config("  engine: {conf: {spark.sql.session.timeZone: Europe/Kyiv}}\n"),
        fresh=True,
    ),
    Case("E0170", "plan", config("  engine: {sandbox: off}\n"), fresh=True),
    Case(
        "E1430",
        "plan",
        config("  engines:\n    flink: {image: 'ghcr.io/acme/flink:1.0'}\n"),
        fresh=True,
    ),
    Case(
        "E0940",
        "validate",
        lambda tiny: (tiny.root / "datasets" / "x.yaml").symlink_to("/etc/passwd"),
        fresh=True,
    ),
    Case("E0120", "plan", template("matrix:\n  n: 1\n---\nkind: A\n"), fresh=True),
    Case("E0121", "plan", template("kind: {{ nothing }}\n"), fresh=True),
    Case("E0122", "plan", template("{% include 'nothing.j2' %}\n"), fresh=True),
    Case("E0123", "plan", template("kind: {{ 1 +\n"), fresh=True),
    Case("E0124", "plan", template("kind: {{ 1 | random }}\n"), fresh=True),
    Case("E0125", "plan", template("kind: {{ 1 / 0 }}\n"), fresh=True),
    Case("E0130", "decode odfbuild.none.bin", put("odfbuild.none.bin", b"\xff\xfe"), fresh=True),
    Case("E0131", "decode block.bin", put("block.bin", b"\0\1\2\3 no block"), fresh=True),
    Case(
        "E0132",
        "decode block.bin",
        put("block.bin", block_of_version(9)),
        fresh=True,
    ),
    Case("E0133", "decode nothing", fresh=True),
    Case("E0134", "schema Nothing", fresh=True),
    Case("E0140", "new file x", fresh=True),
    Case("E0141", "new push my+data", fresh=True),
    Case("E0142", "new files x data/1.csv --key idd", fresh=True),
    Case("E0143", "new files x nowhere/*.csv", fresh=True),
    Case("E0151", "validate", config("  checks: [{match: [roots], notNull: [id]}]\n"), fresh=True),
    Case(
        "E1220",
        "validate",
        config("  show: [{match: [root], columns: {exclude: [idd]}}]\n"),
        fresh=True,
    ),
    Case("E0160", "plan", swap(ROOT, "- value BIGINT", "- value BIGNIT"), fresh=True),
    Case("E0161", "decode early.yaml", put("early.yaml", EARLY_BLOCK), fresh=True),
)


GRAPH = (
    Case(
        "E0201", "plan", lambda tiny: put("datasets/x.yaml", (tiny.root / ROOT).read_bytes())(tiny)
    ),
    Case("E0202", "plan", swap(DERIVED, "datasetRef: root", "datasetRef: rot"), fresh=True),
    Case(
        "E0203",
        "plan",
        lambda tiny: (tiny.derive("a", QUERY, "b"), tiny.derive("b", QUERY, "a")),
        fresh=True,
    ),
    Case(
        "E0204",
        "plan",
        config("  checks: [{match: [root], relationships: {id: {to: derived, field: id}}}]\n"),
        fresh=True,
    ),
    Case("E1001", "ls --remote ./odfbuild.yaml"),
    Case("E1002", "ls --remote ftp://data.example.org"),
    Case("E1003", "ls --remote acme"),
    Case("E1004", "push root --to ./published --as a_b"),
    Case("E1019", f"pull did:odf:fed01{'0' * 64} --from ./published --as x"),
    Case("E1032", "pull root"),
    Case("E1033", "pull file:///published/x_y"),
    Case("E1034", "push --to ../published --as x", exit=64),
    Case("E1035", "push root --to ../published --allow reset:derived", exit=64),
    Case("E1036", "push root data/1.csv", exit=64),
    Case("E1060", "plan", config("  repositories: {-a: {url: x}}\n"), fresh=True),
    Case("E1061", "plan", config("  repositories: {a: {url: x}, A: {url: y}}\n"), fresh=True),
    Case("E1062", "plan", config("  external: {prices: did:odf:1}\n"), fresh=True),
    Case(
        "E1063",
        "plan",
        config("  repositories: {a: {url: x}}\n  external: {b: a/x, c: A/X}\n"),
        fresh=True,
    ),
    Case("E1064", "plan", config("  publish: [{match: ['*'], to: a}]\n"), fresh=True),
    Case("E1301", "plan", table("parquet", "indices: [id]"), fresh=True),
    Case("E1302", "plan", table("parquet", "name: '../{dataset}'"), fresh=True),
    Case("E1303", "plan", table("parquet", "sort: [id, id]"), fresh=True),
    Case(
        "E1065",
        "plan",
        config("  repositories: {a: {url: x}}\n  external: {root: a/x}\n"),
        fresh=True,
    ),
    Case(
        "E1066",
        "plan",
        lambda tiny: (
            config("  repositories: {a: {url: x}}\n")(tiny),
            swap(DERIVED, "datasetRef: root", "datasetRef: a/root")(tiny),
        ),
        fresh=True,
    ),
    Case("E1067", "reset root -y", pulled_root),
    Case("E0211", "plan -s nothing:::", fresh=True, exit=64),
    Case("E0212", "plan -s deriveed", fresh=True, exit=64),
)

_TEST = """\
kind: UnitTests
version: 1
content:
  dataset: derived
  tests:
    - {{name: one, {}}}
"""


def unit_test(code: str, given: str, dataset: str = "derived") -> Case:
    """`validate` of a unit test that is wrong."""
    text = _TEST.format(given).replace("dataset: derived", f"dataset: {dataset}")
    return Case(code, "validate", put("datasets/derived.test.yaml", text), fresh=True)


UNIT_TESTS = (
    unit_test("E1240", "expect: {rows: []}", "nowhere"),
    unit_test("E1241", "given: {nothing: {rows: []}}, expect: {rows: []}"),
    unit_test("E1242", "given: {source: {rows: []}}"),
    unit_test("E1243", "expect: {rows: []}}\n    - {name: one, expect: {rows: []}"),
    unit_test("E1244", "given: {source: {watermark: soon}}, expect: {rows: []}"),
    unit_test("E1245", "expect: {rows: [{nothing: 1}]}"),
)

PLANS = (
    Case("E0550", "plan", swap(DERIVED, "FROM source", "FROM {{ ref('root') }}"), fresh=True),
    Case("E0301", "explain nothing"),
    Case("E0303", "plan", swap(ROOT, "kind: Ledger\n        primaryKey: [id]", "kind: Append")),
    Case("E0304", "plan", event(POLL)),
    Case("E0305", "plan", event(PUSHED), fresh=True),
    Case("E0306", "plan", move_back("root")),
    Case(
        "E0307",
        "plan",
        NO_SOURCE,
        fresh=True,
    ),
    Case(
        "E0308",
        "plan",
        NO_SOURCE,
        fresh=True,
    ),
    Case(
        "E0309",
        "plan",
        event(FIXED),
    ),
    Case(
        "E0312",
        "plan",
        lambda tiny: put(
            DERIVED, (tiny.root / ROOT).read_text().replace("name: root", "name: derived")
        )(tiny),
    ),
    Case(
        "E0314",
        "plan",
        both(
            lambda tiny: tiny.derive("late", QUERY, "derived"),
            said("apply", "-y"),
            swap(ROOT, "value BIGINT", "value STRING"),
        ),
    ),
    Case(
        "E0315",
        "plan",
        both(
            put("datasets/pushed.yaml", PUSHED_TO + PUSHED),
            said("apply", "-y"),
            swap(DERIVED, "datasetRef: root", "datasetRef: pushed"),
        ),
    ),
    Case("E0313", "plan -s derived", fresh=True),
    Case(
        "E0316",
        "plan",
        both(
            config("  policies:\n    - {match: ['*'], forward-only: refuse}\n"),
            swap(DERIVED, "value * 10", "value * 20"),
        ),
    ),
    Case("E0320", "ingest root data/1.csv"),
    Case(
        "E0321",
        "ingest pushed data/1.csv --source q",
        both(
            put(
                "datasets/pushed.yaml",
                PUSHED_TO + PUSHED,
            ),
            said("apply", "-y"),
        ),
    ),
    Case(
        "E0323",
        "watermark set root 2001-01-01T00:00:00Z",
        said("watermark", "set", "root", "2030-01-01T00:00:00Z"),
    ),
    Case("E0331", "watermark set derived 2030-01-01T00:00:00Z"),
    Case("E0332", "reset root --to zzz"),
    Case("E0660", "provenance root 99"),
    Case("E0661", "ls --as-of yesterday"),
    Case("E0662", "corrections root --since 2001-01-01"),
    Case("E0334", "reset derived"),
    Case("E0335", "plan --allow rebuild:nothing"),
    Case("E0336", "plan --allow rebuild:root"),
    Case("E0352", "plan --allow correct:nothing"),
    Case("E0352", "plan --allow correct:derived"),
    Case(
        "E0337",
        "plan --allow rebuild:derived",
        lambda tiny: (
            tiny.derive("second", "SELECT event_time, id, value FROM source", "derived"),
            said("apply", "-y")(tiny),
        ),
    ),
    Case("E0338", "plan --allow rebuild:derived -s root"),
    Case(
        "E0339",
        "plan --allow rebuild:derived",
        both(
            config("  policies:\n    - {match: ['*'], rebuild: refuse}\n"),
            said("apply", "-y"),
        ),
    ),
    Case("E0390", "plan --allow delete:nothing"),
    Case("E0391", "plan --allow delete:derived"),
    Case("E0392", "plan --allow delete:root", undefined),
    Case("E0393", "reset derived --to f1620", deleted_and_made_again),
    Case("E0340", "diff nowhere", git("add -A", "commit -q -m msg")),
    Case("E0341", "blame root"),
    Case("E0342", "diff HEAD", git("add data", "commit -q -m msg"), fresh=True),
    Case("E0343", "git anchor", git()),
    Case("E0344", "git commit", both(put(".gitignore", "chains/\n"), git())),
    Case(
        "E0345",
        "git commit --push",
        git("add -A", "commit -q -m msg", "remote add origin ../nowhere.git"),
    ),
    Case("E0382", "git check", git("add chains/root/refs/head")),
    Case(
        "E0394",
        "git commit --push",
        both(
            git("add -A", "commit -q -m msg", "remote add origin ../nowhere.git"),
            swap(DERIVED, "value * 10", "value * 20"),
            said("apply", "-y"),
        ),
    ),
    Case("E0346", "git commit --push", git("add -A", "commit -q -m msg")),
    Case("E0350", "plan", config("  moved: {root: other}\n")),
    Case("E0360", "apply nothing.json"),
    Case("E0361", "apply plan.json", altered),
    Case("E0362", "apply plan.json", both(saved, swap("odfbuild.yaml", "tiny", "other"))),
    Case("E0363", "apply -y --digest sha256:0", exit=5),
    Case("E0364", "explain root --since nothing"),
    Case("E0365", "apply plan.json -e dev", both(config("  environments: {dev: {}}\n"), saved)),
    Case("E1101", "plan -b pr/.."),
    Case("E1102", "status -b nowhere"),
    Case("E1103", "gc -b pr-12"),
    *UNIT_TESTS,
    Case("E1140", "branch delete pr-* -y"),
    Case("E0370", "ci comment plan.md", put("plan.md", "<!-- odfbuild:tiny:default -->\n")),
    Case(
        "E0371",
        "ci comment plan.md",
        both(
            put("plan.md", "<!-- odfbuild:tiny:default -->\n"),
            put("event.json", '{"pull_request": {"number": 1}}'),
        ),
        env={
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": "http://127.0.0.1:1",
            "GITHUB_EVENT_PATH": "{root}/event.json",
            "GITHUB_REPOSITORY": "some/where",
            "GITHUB_TOKEN": "x",
        },
    ),
    Case("E0373", "storage push"),
    Case("E0376", "plan --nope", exit=64),
    Case("E0380", "plan", config("  environments: {dev: {state: chains/dev}}\n"), fresh=True),
)

SOURCES = (
    Case("E0401", "ingest pushed nothing.csv", PLANS[[c.code for c in PLANS].index("E0321")].spoil),
    Case(
        "E0408",
        "apply -y",
        swap(ROOT, POLLED, "kind: Url\n        url: http://127.0.0.1:1/${{ env.NOTHING_AT_ALL }}"),
        fresh=True,
    ),
)

POLLING_CSV = "    - kind: SetPollingSource\n      fetch:\n        {}\n      read: {{kind: {}}}\n"
APPENDED = "      merge: {kind: Append}\n"


def polled(fetch: str, read: str = "Csv") -> Spoil:
    """A root `pushed` that is polled after all."""
    text = PUSHED_TO + POLLING_CSV.format(fetch, read) + APPENDED
    return put("datasets/pushed.yaml", text)


def earlier_file(tiny: Tiny) -> None:
    """A plan for one file, and another file that comes before it."""
    tiny.arrive(2)
    saved(tiny)
    put("data/1a.csv", "event_time,id,value\n2024-01-09 00:00:00,9,9\n")(tiny)


MORE_SOURCES = (
    Case("E0670", "validate", swap(ROOT, "value BIGINT", "value TIMESTAMP(9)"), fresh=True),
    Case("E0671", "plan", swap(ROOT, "event_time TIMESTAMP", "event_time TIMESTAMP(6)")),
    Case(
        "E0402",
        "plan",
        both(
            swap(ROOT, "path: data/*.csv", "path: data/*/*.csv"),
            put("data/a/x.csv", "event_time,id,value\n"),
            put("data/b/x.csv", "event_time,id,value\n"),
        ),
        fresh=True,
    ),
    Case("E0403", "plan", swap(ROOT, "order: ByName", "order: ByEventTime"), fresh=True),
    Case(
        "E0404",
        "apply plan.json",
        both(
            polled("{kind: Url, url: data/1.csv}"),
            lambda tiny: swap(
                "datasets/pushed.yaml", "data/1.csv", f"file://{tiny.root}/data/1.csv"
            )(tiny),
            saved,
            lambda tiny: (tiny.root / "data/1.csv").unlink(),
        ),
    ),
    Case("E0407", "apply -y", polled("{kind: Url, url: 'ftp://127.0.0.1:99999/x.csv'}")),
    Case(
        "E0417",
        "plan",
        polled("{kind: EthereumLogs, chainId: 1, filter: address = X'00'}"),
    ),
    Case(
        "E0418",
        "apply -y",
        polled("{kind: EthereumLogs, chainId: 77, filter: address = X'00'}", "Parquet"),
    ),
    Case(
        "E0532",
        "apply -y",
        put(
            "datasets/pushed.yaml",
            PUSHED_TO
            + SCHEMA
            + "          - {name: id, type: String, extra: "
            + "{arrow.apache.org/bufferEncoding: {kind: Nothing}}}\n"
            + PUSHED.replace("NdJson", "NdJson, schema: [id STRING]"),
        ),
    ),
    Case("E0703", "apply plan.json", earlier_file, exit=5),
    Case(
        "E0172",
        "apply -y -s pushed",
        polled(
            "{kind: FilesGlob, path: data/*.csv, order: ByName}\n"
            "      prepare: [{kind: Pipe, command: [cat]}]"
        ),
    ),
    Case(
        "E0904",
        "apply -y",
        polled("{kind: Container, image: x}"),
        env={"ODFBUILD_CONTAINER_RUNTIME": "/nowhere/podman"},
    ),
)
