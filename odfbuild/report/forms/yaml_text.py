"""Plain values as YAML-like lines for people: block text for queries, quotes only where needed.

Made for reading and for line diffs, not for parsing.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN = re.compile(r"[^\W_][\w ./@()*%,+=<>-]*|_?[\w.]+")
_AMBIGUOUS = re.compile(r"(?i)true|false|null|yes|no|on|off|[\d.,_+-]+")


def yaml_lines(value: Any, indent: int = 0) -> list[str]:
    """Lines of a dict, a list or a scalar, each indented by `indent` spaces."""
    pad = " " * indent
    if isinstance(value, dict):
        lines: list[str] = []
        for key, item in value.items():
            lines += _entry(f"{pad}{key}:", item, indent)
        return lines
    if isinstance(value, list):
        lines = []
        for item in value:
            inner = yaml_lines(item, indent + 2)
            lines += [f"{pad}- {inner[0][indent + 2 :]}", *inner[1:]] if inner else [f"{pad}- {{}}"]
        return lines
    return [pad + _scalar(value)]


def _entry(head: str, item: Any, indent: int) -> list[str]:
    if isinstance(item, str) and "\n" in item:
        inner = " " * (indent + 2)
        return [f"{head} |", *(f"{inner}{line}".rstrip() for line in item.rstrip().splitlines())]
    if isinstance(item, dict | list):
        if not item:
            return [f"{head} {'{}' if isinstance(item, dict) else '[]'}"]
        if isinstance(item, list) and all(isinstance(i, str | int) for i in item):
            flat = f"{head} [{', '.join(map(_item, item))}]"
            if len(flat) <= 100:
                return [flat]
        return [head, *yaml_lines(item, indent + 2)]
    return [f"{head} {_scalar(item)}"]


def _item(value: Any) -> str:
    """A scalar of a list on one line, where a comma ends an item."""
    return json.dumps(value, ensure_ascii=False) if "," in str(value) else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and not _AMBIGUOUS.fullmatch(value) and value == value.strip():
            return value
        if re.fullmatch(r"did:odf:\w+|\d{4}-[\dT:.Z-]+|https?://\S+", value):
            return value
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)
