"""Hooks of mkdocs: the README is the first page; links to other files lead to the repository."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)((?:#[^)\s]*)?)(?=\))")
_SOURCE = re.compile(r"(?<=src=\")(?!https?:)([^\"]+)(?=\")")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Take the README as the first page."""
    files.append(File.generated(config, "index.md", content=(_ROOT / "README.md").read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Turn links of a file in the repository into those of a page of the site."""
    source = "README.md" if page.file.src_uri == "index.md" else f"docs/{page.file.src_uri}"
    here = posixpath.dirname(source)
    page_folder = posixpath.dirname(page.file.src_uri)

    def target(path: str) -> str:
        meant = posixpath.normpath(posixpath.join(here, path))
        if meant == "README.md":
            return posixpath.relpath("index.md", page_folder or ".")
        if meant.startswith("docs/"):
            return posixpath.relpath(meant.removeprefix("docs/"), page_folder or ".")
        if not (_ROOT / meant).exists():
            return path  # mkdocs says that it is not there
        kind = "tree" if (_ROOT / meant).is_dir() else "blob"
        return f"{config['repo_url']}/{kind}/main/{meant}"

    markdown = _SOURCE.sub(lambda found: target(found[1]), markdown)
    return _LINK.sub(lambda found: target(found[1]) + found[2], markdown)
