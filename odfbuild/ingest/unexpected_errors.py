"""Convert an unexpected exception to an error: of the machine's disk, or a defect of odfbuild."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from odfbuild.errors import EnvironmentProblem, OdfbuildError
from odfbuild.extras import missing_library
from odfbuild.ingest.secrets import scrub

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


def unforeseen(
    error: Exception, folder: Path, doing: str, dataset: str | None = None
) -> OdfbuildError:
    """What a user is told: E0910 for a full or forbidden disk, E0903 for an extra, else E0999.

    The traceback of a defect goes to a file in `folder`. `doing` says at what work it came, such as
    `verify`. Secrets are left out of both.
    """
    if isinstance(error, OSError) and error.errno in (*_FULL, *_FORBIDDEN):
        return _of_disk(error, doing, dataset)
    if absent := missing_library(error, doing.removeprefix("doing ")):
        return absent
    return _defect(error, folder, doing, dataset)


def _of_disk(error: OSError, doing: str, dataset: str | None) -> EnvironmentProblem:
    file = scrub(str(error.filename)) if error.filename else "a file"
    way_out = "make room on the disk" if error.errno in _FULL else "let yourself write there"
    return EnvironmentProblem(
        f"{file} cannot be used: {scrub(error.strerror or str(error))}",
        code="E0910",
        dataset=dataset,
        notes=(f"while {doing}",),
        help=f"{way_out}, then run the same command again; what was committed is whole",
    )


def _defect(error: Exception, folder: Path, doing: str, dataset: str | None) -> OdfbuildError:
    try:
        text = scrub("".join(traceback.format_exception(error)))
        said = str(error).strip().partition("\n")[0]  # DuckDB and Spark add whole tracebacks
        reason = scrub(f"{type(error).__name__}: {said}")
    except Exception:
        # The text of a Java exception is asked of a JVM, which may have ended by now.
        text = "".join(traceback.format_tb(error.__traceback__))
        reason = type(error).__name__
    log = folder / "defect.log"
    try:
        log.write_text(text, encoding="utf-8")
        note, what = f"the details are in {log}", "that file"
    except OSError:
        note, what = text.rstrip(), "these lines"
    return OdfbuildError(
        f"internal error while {doing}: {reason}",
        code="E0999",
        dataset=dataset,
        notes=(note,),
        help=f"this is a defect of odfbuild; please report it with {what}",
    )
