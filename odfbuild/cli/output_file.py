"""Files that a command is asked to write, as by `--out`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

from odfbuild.errors import EnvironmentProblem

_T = TypeVar("_T")


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
        raise _not_written(file, error) from None
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)


def replace_file(file: Path, make: Callable[[Path], _T]) -> _T:
    """Let `make` write a new file, which then takes the place of `file`; E0910 as above."""
    staged = file.with_name(f".{file.name}.part")
    try:
        if file.exists() and not file.is_file():
            raise OSError(0, "it is no file")
        staged.unlink(missing_ok=True)
        # Where nothing can be written, this tells why in the words of the system.
        staged.touch()
        staged.unlink()
        found = make(staged)
        staged.replace(file)
        return found
    except OSError as error:
        raise _not_written(file, error) from None
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)


def _not_written(file: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{file} cannot be written: {error.strerror}",
        code="E0910",
        help="give a file in a folder that exists and that you may write to",
    )


def write_json(file: Path, data: object) -> None:
    """Make a file with `data` as JSON, as `write_output` does."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_output(file, lambda to: to.write(text.encode()))
