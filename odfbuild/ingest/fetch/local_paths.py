"""Paths of `file:` URLs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from odfbuild.errors import IngestError


def local_path(url: str, root: Path, shown: str | None = None) -> str:
    """The file that a `file:` URL names; `file:data/x.csv` starts at the project's folder.

    `shown` is the URL as messages may show it.
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        if shown not in (None, url):
            raise IngestError(
                f"'{shown}' names a host, but files are read from this machine",
                code="E0407",
                help="write file:///… for an absolute path",
            )
        raise IngestError(
            f"'{url}' names the host '{parts.netloc}', but files are read from this machine",
            code="E0407",
            help=f"write file:///{parts.netloc}{parts.path} for an absolute path, or "
            f"file:{parts.netloc}{parts.path} for one that starts at the project's folder",
        )
    path = unquote(parts.path)
    return path if path.startswith("/") else f"{root}/{path}"
