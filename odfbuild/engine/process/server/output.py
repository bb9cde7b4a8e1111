"""Files that a coordinator asked for: there is none, or a complete one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odfbuild.errors import EngineError


@contextmanager
def complete(target: Path) -> Iterator[Path]:
    """A name for a file beside `target`, which gets that name when all went well.

    Raises `EngineError` E1406 when it cannot be written.
    """
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        yield unfinished
        unfinished.chmod(0o644)
        unfinished.replace(target)
    except OSError as error:
        raise EngineError(
            f"{target} cannot be written: {error.strerror or error}",
            code="E1406",
            help="give the engine a folder that it may write to, with enough room",
        ) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
