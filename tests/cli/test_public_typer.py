"""The command line is made of what Typer documents."""

import ast
from pathlib import Path

import odfbuild.cli

DOCUMENTED = {"typer.core": {"TyperCommand", "TyperGroup"}, "typer.main": {"get_command"}}


def test_only_documented_names_of_typer_are_imported() -> None:
    others = [
        f"{file.name}: {node.module}.{name.name}"
        for file in sorted(Path(odfbuild.cli.__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("typer", "click"))
        for name in node.names
        if name.name not in DOCUMENTED.get(node.module or "", ())
    ]
    assert others == []
