"""What people write, and what nobody should have: definitions, templates, texts of queries.

Every case is known by its seed. A case ends well, or with errors that have a code and a place.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.schema.ddl import read_ddl
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.project.load import read_project
from odfbuild.sql.check.check import errors_of
from odfbuild.sql.columns.of_query import columns_of, result_of
from odfbuild.sql.columns.query_lineage import lineage_of

Case = Callable[[int], None]
ROOT = Path(__file__).parents[2]
FOLDERS = ("example_project/datasets", "tests/projects", "templates")
_PROJECT = "kind: Project\nversion: 1\ncontent:\n  name: made\n"
_PIECES = (
    *("[", "]", "{", "}", "- ", ": ", "#", "&a ", "*a", "!x ", "|\n", ">\n", "\t", "\0", "\ufeff"),
    *("{{", "}}", "{%", "%}", "${{", "'", '"', "`", "\\", "\n", "\r", "\u2028", "\U0001f600"),
    *("---\n", "matrix:", "kind:", "null", "~", "1e400", "0x1f", ".nan", "9" * 400, "<<: "),
    *("{% for x in range(9999) %}", "{% endfor %}", "|replace('a', 'b' * 99)", "{% raw %}"),
    *("SELECT ", " FROM ", " JOIN ", " UNION ALL ", " OVER (", "(", ")", ",", "CASE WHEN "),
    *(
        "/*",
        "*/",
        "--",
        "LATERAL VIEW explode(",
        " AS ",
        "WITH a AS (",
        "->",
        "::",
        "$$",
        ";",
        "|>",
    ),
)


def mutated(whole: str, others: list[str], seed: int) -> str:
    """A text with parts removed, doubled, exchanged, put in; some many times."""
    chance = random.Random(seed)
    text = whole
    for _ in range(chance.randint(1, 6)):
        at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + chance.choice((1, 5, 40, 400)))
        other = chance.choice(others)
        begin = chance.randrange(len(other) + 1)
        often = 1 if chance.random() < 0.97 else chance.choice((50, 3_000, 60_000))
        piece = chance.choice(
            (
                "",
                chance.choice(_PIECES) * often,
                text[at:end] * chance.choice((2, 2, 3, 50)),
                other[begin : begin + chance.choice((5, 40, 400))],
                chr(chance.randrange(0x11_0000)),
            )
        )
        text = (text[:at] + piece + text[end:])[:400_000]
    return text.encode("utf-8", "replace").decode()


def _texts(*suffixes: str) -> list[str]:
    return [
        file.read_text("utf-8")
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*"))
        if file.name.endswith(suffixes)
    ]


def _project(folder: Path, name: str, whole: list[str]) -> Case:
    (folder / "datasets").mkdir()
    (folder / "odfbuild.yaml").write_text(_PROJECT)

    def case(seed: int) -> None:
        text = mutated(whole[seed % len(whole)], whole, seed)
        file = folder / ("odfbuild.yaml" if seed % 13 == 0 else f"datasets/{name}")
        file.write_text(text, "utf-8")
        try:
            project = read_project(folder)
            errors = [e for wrong in project.wrong for each in wrong.errors for e in each.apart()]
        except OdfbuildError as error:
            errors = [*error.apart()]
        finally:
            (folder / "odfbuild.yaml").write_text(_PROJECT)
        assert all(each.code not in ("E0999", "E0000") for each in errors), errors

    return case


def definitions(folder: Path) -> Case:
    """Files of definitions and odfbuild.yaml."""
    return _project(folder, "made.yaml", _texts(".yaml"))


def templates(folder: Path) -> Case:
    """Templates of definitions."""
    return _project(folder, "made.yaml.j2", [*_texts(".yaml.j2"), *_texts(".yaml")[:5]])


COLUMNS = columns_of(
    read_ddl(
        [
            *("offset BIGINT", "op INT", "system_time TIMESTAMP", "event_time TIMESTAMP"),
            *("id BIGINT", "value DECIMAL(10, 2)", "city STRING"),
        ]
    )
)


NAMES = {name: tuple(each.name for each in COLUMNS) for name in ("a", "source")}


def queries(folder: Path) -> Case:
    """Texts of queries, which are checked, typed and followed without Spark."""
    whole = [*_queries()]

    def case(seed: int) -> None:
        text = mutated(whole[seed % len(whole)], whole, seed)
        transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=text),))
        inputs = {"a": COLUMNS, "source": COLUMNS, "unknown": None}
        errors = errors_of(transform, inputs, Vocabulary(), "made")
        assert all(each.code not in ("E0999", "E0000") for each in errors), errors
        result_of(transform, inputs)
        lineage_of(transform, NAMES)

    return case


def _queries() -> Iterator[str]:
    for file in ("accepted.sql", "refused.sql"):
        yield from re.split(r";\s*\n", (ROOT / "tests/engine" / file).read_text("utf-8"))
    for text in _texts(".yaml", ".yaml.j2"):
        yield from re.findall(r"query: \|\n((?:  .*\n|\n)+)", text)


TARGETS: dict[str, Callable[[Path], Case]] = {
    "definitions": definitions,
    "templates": templates,
    "queries": queries,
}
