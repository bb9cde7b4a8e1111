"""The first file that a source gives, for whoever writes its definition; nothing is kept of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import FetchStep
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.model import Config


@contextmanager
def first_fetched(step: FetchStep, config: Config) -> Iterator[tuple[Path, str]]:
    """The file, until the context ends, and what messages call it.

    Raises `OdfbuildError`, without a place, because there is no definition.
    """
    from odfbuild.ingest.fetch import FetchContext, fetch

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        context = FetchContext(
            project=config.name,
            dataset="new",
            root=config.root,
            scratch=scratch,
            cache=scratch / "cache",
            inbox=scratch / "inbox",
            now=Timestamp.now(),
            settings=config.ingest,
        )
        try:
            first = next(fetch(step, None, context), None)
            if first is None or first.file is None:
                raise AssertionError("a source without a state gives its data")
            yield first.file, first.display_name
        except OdfbuildError as error:
            raise error.changed(location=None) from None
