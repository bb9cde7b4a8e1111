"""Where a dataset was pulled from and is pushed to: `info/config` beside its chain.

The file is the reference's `DatasetConfig`; its tools read it, too. Source: reference behaviour,
"pull and push aliases".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.store.files import read_inside, write_file
from odfbuild.values import Value

_KIND = "DatasetConfig"


class DatasetConfig(Value):
    """References to a dataset elsewhere, as they were given when it was pulled or pushed."""

    pull_aliases: tuple[str, ...] = ()
    push_aliases: tuple[str, ...] = ()


def read_config(folder: str) -> DatasetConfig:
    """The configuration of the dataset in `folder`; empty when there is none that can be read."""
    try:
        text = read_inside(f"{folder}/info/config").decode()
    except (OSError, UnicodeDecodeError):
        return DatasetConfig()
    from odfbuild.errors import OdfbuildError
    from odfbuild.project.yaml.source import read_documents

    try:
        documents: list[Any] = read_documents(text, "info/config")
        content = documents[0]["content"]
        return DatasetConfig(_texts(content["pullAliases"]), _texts(content.get("pushAliases")))
    except (OdfbuildError, IndexError, KeyError, TypeError, AttributeError):
        return DatasetConfig()


def write_config(folder: Path, config: DatasetConfig) -> None:
    """Write the configuration of the dataset in `folder`."""
    manifest = {
        "kind": _KIND,
        "version": 1,
        "content": {
            "pullAliases": list(config.pull_aliases),
            "pushAliases": list(config.push_aliases),
        },
    }
    write_file(folder / "info" / "config", dump_yaml(manifest).encode())


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
