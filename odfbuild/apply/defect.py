"""An exception that nobody foresaw, as an error whose details are kept."""

from __future__ import annotations

import traceback
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.secrets import scrub


def defect_of(
    error: Exception, folder: Path, doing: str, dataset: str | None = None
) -> OdfbuildError:
    """The error E0999 for an exception; its traceback goes to a file in `folder`.

    `doing` says at what work it came, such as `verify`. Secrets are left out of both.
    """
    log = folder / "defect.log"
    try:
        text = scrub("".join(traceback.format_exception(error)))
        reason = scrub(f"{type(error).__name__}: {error}")
    except Exception:
        # The text of a Java exception is asked of a JVM, which may have ended by now.
        text = "".join(traceback.format_tb(error.__traceback__))
        reason = type(error).__name__
    log.write_text(text, encoding="utf-8")
    return OdfbuildError(
        f"internal error while {doing}: {reason}",
        code="E0999",
        dataset=dataset,
        notes=(f"the details are in {log}",),
        help="this is a defect of odfbuild; please report it with that file",
    )
