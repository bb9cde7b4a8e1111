"""Files that a command is asked to write, as by `--out`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from odfbuild.errors import EnvironmentProblem


def write_output(file: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Make a file, whole or not at all; `EnvironmentProblem` E0910 when it cannot be written."""
    staged = file.with_name(f".{file.name}.part")
    try:
        # A pipe or a device such as /dev/stdout is written to; only a file can be replaced.
        replaceable = file.is_file() or not file.exists()
        if replaceable:
            # A link of that name, which Git may have brought, would lead what is written elsewhere.
            staged.unlink(missing_ok=True)
        with staged.open("xb") if replaceable else file.open("wb") as to:
            write(to)
        if replaceable:
            staged.replace(file)
    except OSError as error:
        raise EnvironmentProblem(
            f"{file} cannot be written: {error.strerror}",
            code="E0910",
            help="give a file in a folder that exists and that you may write to",
        ) from None
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)


def write_json(file: Path, data: object) -> None:
    """Make a file with `data` as JSON, as `write_output` does."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_output(file, lambda to: to.write(text.encode()))
