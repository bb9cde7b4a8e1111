"""Texts that an editor holds and has not saved yet: they are read in place of the files.

They hold for what runs within `reading_unsaved`, and for nobody else. Files of variables and of the
machine are always read as they are saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_TEXTS: ContextVar[Mapping[str, str]] = ContextVar("unsaved texts")
_NONE: Mapping[str, str] = {}


@contextmanager
def reading_unsaved(texts: Mapping[str, str]) -> Iterator[None]:
    """Read these texts, by absolute path, in place of what is saved there."""
    token = _TEXTS.set(texts)
    try:
        yield
    finally:
        _TEXTS.reset(token)


def unsaved_text(path: str | Path) -> str | None:
    """The text that an editor holds of a file; `None`: what is saved counts."""
    texts = _TEXTS.get(_NONE)
    return texts.get(os.path.abspath(path)) if texts else None  # noqa: PTH100  # keeps links


def unsaved_texts() -> Mapping[str, str]:
    """All texts that are not saved, by absolute path."""
    return _TEXTS.get(_NONE)


def unsaved_below(folder: Path) -> list[str]:
    """Paths below a folder of which an editor holds a text."""
    return [path for path in unsaved_texts() if path.startswith(f"{folder}/")]
