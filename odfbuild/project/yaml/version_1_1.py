"""Text as YAML that readers of 1.1 and 1.2 understand alike.

odfbuild reads YAML 1.2, where `NO` is text. Many tools still read 1.1, where it is false: the
Norway problem.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from odfbuild.odf.yaml_text import dump_yaml

_MEANINGS = {
    "bool": "a truth value",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
    "null": "nothing",
    "merge": "a merge key",
    "value": "a default value",
}


def other_meaning(text: str) -> str | None:
    """What YAML 1.1 takes plain `text` for, when that is not text; in words."""
    tag = _resolver().resolve(_scalar_node(), text, (True, False)).rpartition(":")[2]
    if tag == "str" and text in ("y", "Y", "n", "N"):
        return _MEANINGS["bool"]  # by the letter of YAML 1.1, though PyYAML does not know it
    return _MEANINGS.get(tag)


def text_as_yaml(value: str) -> str:
    """Text in its shortest safe spelling: plain, else in double quotes, else with escapes.

    For values in block style that are one line; others come out as canonical YAML has them.
    """
    canonical = dump_yaml(value).rstrip("\n")
    if canonical == value and other_meaning(value) is None:
        return value
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return canonical


@cache
def _resolver() -> Any:
    import yaml

    return yaml.SafeLoader("")


def _scalar_node() -> Any:
    import yaml

    return yaml.ScalarNode
