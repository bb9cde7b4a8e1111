"""Private parts of Spark are touched in one folder, and nothing untyped comes out of it."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import odfbuild
from odfbuild.engine.spark import internals

PACKAGE = Path(odfbuild.__file__).parent
DOOR = Path(internals.__file__).parent
PUBLIC = {
    "pyspark": {"SparkContext", "TaskContext"},
    "pyspark.errors": {"AnalysisException", "ParseException", "PySparkException"},
    "pyspark.sql": {"Column", "DataFrame", "SparkSession", "types"},
    "pyspark.sql.functions": {"col", "expr", "lit", "spark_partition_id"},
    "pyspark.sql.types": None,
}
"""What PySpark's reference documents, of what is used; `None`: all of a module."""
JVM = re.compile(
    r"\b(org\.apache\.\w+\.|scala\.\w+\.|java\.(lang|util|io|net|nio)\b|sun\.\w+\.)|MODULE\$"
    r"|\$default\$|\b_(jvm|jdf|jsc|jspark|gateway|sc)\b|_PYSPARK_|PYSPARK_GATEWAY"
    r"|== (Analyzed|Optimized|Parsed|Physical)|JVM stacktrace"
)


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """All that stands in modules on the outer side of the door, with the names of the modules."""
    return [
        (str(file.relative_to(PACKAGE)), node)
        for file in sorted(PACKAGE.rglob("*.py"))
        if DOOR not in file.parents
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute | ast.Name | ast.Constant)
    ]


def found(look: Callable[[ast.AST], Iterator[str]]) -> list[str]:
    return [
        f"{name}:{getattr(node, 'lineno', 1)}: {what}"
        for name, node in nodes()
        for what in look(node)
    ]


def test_only_the_door_imports_what_pyspark_does_not_document() -> None:
    def look(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if re.match("(pyspark|py4j)", each.name))
        elif isinstance(node, ast.ImportFrom) and re.match("(pyspark|py4j)", node.module or ""):
            allowed = PUBLIC.get(node.module or "", set())
            for each in node.names:
                if allowed is not None and each.name not in allowed:
                    yield f"{node.module}.{each.name}"

    assert found(look) == []


def test_only_the_door_looks_at_private_attributes_of_others() -> None:
    def look(node: ast.AST) -> Iterator[str]:
        if not isinstance(node, ast.Attribute) or not re.match(r"_[a-z]", node.attr):
            return
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            yield node.attr

    in_engine = [each for each in found(look) if each.startswith("engine/spark/")]
    assert in_engine == []


def test_only_the_door_names_what_is_in_the_jvm() -> None:
    def look(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = JVM.search(node.value)
            if match:
                yield match[0]
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if re.fullmatch(r"_(jvm|jdf|jsc|jspark\w*|gateway_client)|java_exception", name):
                yield name

    assert found(look) == []


def test_nobody_else_imports_the_table_of_classes() -> None:
    def look(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.ImportFrom) and node.module == f"{internals.__name__}.jvm":
            yield "jvm"

    assert found(look) == []


def test_what_the_door_gives_out_has_a_type() -> None:
    untyped = []
    for file in sorted(DOOR.glob("*.py")):
        if file.name == "jvm.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                given = ast.unparse(node.returns) if node.returns else "nothing"
                if re.search(r"\b(Any|nothing)\b", given):
                    untyped.append(f"{file.name}: {node.name} gives {given}")
    assert untyped == []
