"""Plain data as canonical YAML text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_OTHER_BREAKS = re.compile("[\\r\\x85\\u2028\\u2029]")


def dump_yaml(data: Any) -> str:
    """Plain data as canonical YAML text."""
    import yaml

    dumper = _dumper()
    text: str = yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=2**31)
    # The end of a document stands in the first column; text that says the same is indented.
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Plain style wherever YAML 1.2 allows it, `|` for text of several lines."""

    Dumper.yaml_implicit_resolvers = {}
    for tag, expression, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
        ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
        (
            "float",
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
            "-+0123456789.",
        ),
    ):
        Dumper.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{expression})$"), list(first)
        )

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        if _OTHER_BREAKS.search(value):
            style = '"'  # The only style that keeps them: elsewhere they are folded to spaces.
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper
