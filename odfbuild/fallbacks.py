"""A fast way that fails gives way to a slower one, and the log says so.

The logger is that of the module (`logging.getLogger("odfbuild.…")`), which shows nothing unless
`-v` or the host program asks for it. Where `ODFBUILD_STRICT_FALLBACKS` is set, as in the tests, a
failure that nobody foresaw is an error: else a fast way could break, and only become slow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from odfbuild.errors import OdfbuildError

STRICT = "ODFBUILD_STRICT_FALLBACKS"


def fell_back(
    module: str, consequence: str, error: BaseException, *, foreseen: bool = False
) -> None:
    """Log that a fast way of `module` failed by `error`, and what happens instead.

    Errors of the user's data and of the disk are `foreseen`: the slower way tells them, with a
    place.
    """
    import logging

    logging.getLogger(module).info("%s: %s: %s", consequence, type(error).__name__, error)
    foreseen = foreseen or isinstance(error, (OdfbuildError, OSError))
    if os.environ.get(STRICT) and not foreseen:
        raise error


@contextmanager
def falling_back(module: str, consequence: str, *kinds: type[BaseException]) -> Iterator[None]:
    """Go on behind the block where an error of these kinds (default: any) ends it."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, kinds or Exception):
            raise
        fell_back(module, consequence, error)
