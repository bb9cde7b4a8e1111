"""Files that ship with odfbuild."""

from __future__ import annotations

from pathlib import Path


def template_text(name: str) -> str:
    """Text of a file of `templates/`."""
    return (_folder("templates") / name).read_text(encoding="utf-8")


def schema_text(name: str) -> str:
    """Text of a file of `schemas/`."""
    return (_folder("schemas") / name).read_text(encoding="utf-8")


def _folder(name: str) -> Path:
    package = Path(__file__).resolve().parent.parent
    installed = package / "_resources" / name
    return installed if installed.is_dir() else package.parent / name
