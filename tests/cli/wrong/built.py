"""Datasets that are wrong in ways that show when they are built, or done again: two projects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from odfbuild.cli.main import run
from odfbuild.odf.model import MetadataEvent
from odfbuild.odf.timestamp import Timestamp
from tests.apply.tiny import QUERY, Tiny
from tests.cli.wrong.chains import Chain, foreign
from tests.cli.wrong.prepare import preparing
from tests.cli.wrong.spoil import SCHEMA, Pair, move_back
from tests.ingest import bad_sources, bad_text
from tests.ingest.many_sources import arrive, define
from tests.project.write_project import derived_yaml, root_yaml

_QUERIES = {
    "E0501": "SELECT event_time, idd FROM source",
    "E0502": "SELECT event_time, id FROM source WHERE id = :mark",
    "E0503": "SELECT event_time, id FROM source, no_such_function(1)",
    "E0504": "SELECT event_time, id FROM csv.`/etc/passwd`",
    "E0505": "SELECT event_time, id, rand() AS r FROM source",
    "E0506": "SELECT event_time, id FROM source LIMIT 1",
    "E0510": "SELECT event_time, id, INTERVAL '1' MONTH AS i FROM source",
    "E0511": "SELECT event_time, id, id FROM source",
    "E0514": "SELECT event_time, id, id AS offset FROM source",
    "E0515": "SELECT id FROM source",
    "E0516": "SELECT 'x' AS event_time, id FROM source",
}
_CHECKS = {
    "E0540": "rowCount: {max: 1}",
    "E0541": "notNull: [nothing]",
    "E0542": "relationships: {id: {to: nothing, field: id}}",
    "E0543": "sql: {none: no query}",
}
_SOURCES = {
    **{case.code: case for case in reversed([*bad_sources.CASES, *bad_text.CASES]) if case.code},
    "E0422": bad_sources.Case(
        "", b"n\n1\n", b"", "E0422", "", read=bad_sources.csv("n ARRAY<INT>")
    ),
    "E0426": bad_sources.Case(
        "", b"t\n" + b"x" * (1 << 26) + b"xx", b"", "E0426", "", read=bad_sources.csv("t STRING")
    ),
    "E0512": bad_sources.Case(
        "", b'{"m": null}\n', b"", "", "", read=bad_sources.lines("NdJson", "m MAP<STRING, INT>")
    ),
    "E0623": bad_sources.Case(
        "",
        b'{"t":' * 101 + b"1" + b"}" * 101 + b"\n",
        b"",
        "",
        "",
        read=bad_sources.lines("NdJson", "t STRING"),
    ),
    "E0530": bad_sources.Case(
        "",
        b'{"m": null}\n',
        b"",
        "",
        "",
        read=bad_sources.lines("NdJson", "m ARRAY<STRUCT<a: INT>>"),
    ),
    "E0433": bad_sources.Case(
        "", b"event_time\ntrue\n", b"", "E0433", "", read=bad_sources.csv("event_time BOOLEAN")
    ),
}
_IN_TRANSFORMS = {
    "E0317": ("        engine: spark\n", "        engine: spark\n        version: '9'\n"),
    "E0518": (
        "        query:",
        "        temporalTables:\n          - {name: nowhere, primaryKey: [id]}\n        query:",
    ),
}
HEALTHY = ("cities", "derived", "healthy", "root")
MISTAKES = {
    "ragged": "E0421",
    "missing": "E0307",
    "syntax": "E0501",
    "column": "E0501",
    "templated1": "E0501",
}
BUILT = {c.lower(): c for c in (*_QUERIES, *_CHECKS, *_SOURCES, *_IN_TRANSFORMS, "E0520")}
"""The code of the error that a dataset meets whenever it is built, by its name."""

AGAIN = {f"{c.lower()}.derived": c for c in ("E0820", "E0821", "E0823", "E0824")}
"""The code of what is wrong with a dataset whose steps are done again, by its name."""


def unbuildable(root: Path) -> Tiny:
    """A project of `HEALTHY` datasets, of those in `BUILT` and in `MISTAKES`."""
    tiny = Tiny.fresh(root)
    _config(root)
    for code, query in _QUERIES.items():
        tiny.derive(code.lower(), query)
    for code in (*_CHECKS, *_IN_TRANSFORMS):
        tiny.derive(code.lower(), QUERY)
    for code, (old, new) in _IN_TRANSFORMS.items():
        file = root / "datasets" / f"{code.lower()}.yaml"
        file.write_text(file.read_text().replace(old, new))
    for code, case in _SOURCES.items():
        named = replace(case, name=str(code).lower())
        define(root, named)
        if case.before is not None:
            arrive(root, named, "0", case.before)
        arrive(root, named, "1", case.bad)
    text = (
        root_yaml("e0520", "id BIGINT", glob="data/e0520/*")
        + SCHEMA
        + "          - {name: id, type: Int64}\n"
    )
    (root / "datasets" / "e0520.yaml").write_text(text)
    (root / "data" / "e0520").mkdir()
    (root / "data" / "e0520" / "1").write_text('id\n""\n')
    _mistakes(root)
    return tiny


def _config(root: Path) -> None:
    checks = [f"    - {{match: [{code.lower()}], {text}}}\n" for code, text in _CHECKS.items()]
    with (root / "odfbuild.yaml").open("a") as config:
        config.write(f"  ingest:\n    maxUnpackedBytes: {bad_sources.LIMIT}\n")
        config.write("  checks:\n" + "".join(checks))


def _mistakes(root: Path) -> None:
    wrong = "SELECT event_time,\n  citi FROM src"
    texts = {
        "cities.yaml": root_yaml("cities", glob="cities/*.csv"),
        "ragged.yaml": root_yaml("ragged", glob="cities/ragged.txt"),
        "missing.yaml": root_yaml("missing", glob="nowhere/*.csv"),
        "healthy.yaml": derived_yaml("healthy", "cities"),
        "syntax.yaml": derived_yaml("syntax", "cities", "SELECT event_time, id\nFORM src WHERE"),
        "column.yaml": derived_yaml("column", "cities", wrong),
        "templated.yaml.j2": "matrix:\n  n: [1]\n---\n"
        + derived_yaml("templated{{ n }}", "cities", wrong),
    }
    for name, text in texts.items():
        (root / "datasets" / name).write_text(text)
    (root / "cities").mkdir()
    (root / "cities" / "a.csv").write_text("id,city\n1,Kyiv\n2,Lisbon\n")
    (root / "cities" / "ragged.txt").write_text("id,city\n1,Kyiv\nmany,Lisbon\n")


def unrepeatable(root: Path) -> Tiny:
    """A project that was applied without Spark, in which Spark finds what is in `AGAIN`."""

    def watermark(chain: Chain) -> MetadataEvent:
        return replace(chain.executed(), new_watermark=Timestamp.parse("2031-01-01T00:00:00Z"))

    with preparing():
        tiny = Tiny.fresh(root)
        tiny.derive("e0820.derived", QUERY.replace("* 10", "+ 10"))
        tiny.derive("e0821.derived", QUERY)
        tiny.derive("e0824.derived", QUERY.replace("value *", "array_max(value) + value *"))
        text = (root / "datasets" / "root.yaml").read_text()
        (root / "datasets" / "e0823.yaml").write_text(
            text.replace("name: root", "name: e0823.root")
        )
        tiny.derive("e0823.derived", QUERY, "e0823.root")
        assert run(["-C", str(root), "apply", "-y"]) == 0
        move_back("root")(Pair(root, "e0823."))
        foreign(watermark, "derived")(Pair(root, "e0821."))
    return tiny
