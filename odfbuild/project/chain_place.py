"""Write into odfbuild.yaml where the blocks of chains are: one line changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from odfbuild.errors import ChainError, OdfbuildError
from odfbuild.project.config import FILE, load_config
from odfbuild.project.rewrite import replace_text
from odfbuild.project.yaml.source import has, locate

if TYPE_CHECKING:
    from odfbuild.project.model import Config

_COMMAND = "odfbuild chains move"


def set_chain_place(config: Config, place: Literal["git", "storage"]) -> None:
    """Let `chains` be `place` in the environment of `config`, or for the whole project.

    `ChainError` E0675 when the file is not written line by line; it is as it was then.
    """
    file = config.root / FILE
    before = file.read_text(encoding="utf-8")
    above: tuple[str, ...] = ("content",)
    if config.env is not None:
        above = ("content", "environments", config.env)
    text = _changed(before, above, place)
    if text is not None:
        replace_text(file, text, f"{_COMMAND} --to {place}")
        try:
            if load_config(config.root, config.given).chains == place:
                return
        except OdfbuildError:
            pass
        replace_text(file, before, f"{_COMMAND} --to {place}")
    raise ChainError(
        f"{FILE} could not be changed, so chains stay where they are",
        code="E0675",
        location=locate(before, FILE, 0, above),
        notes=("all blocks were copied, and nothing was removed",),
        help=f"write `chains: {place}` beside `storage` under `{'.'.join(above)}`, and run "
        f"`{_COMMAND} --to {place}` again",
    )


def _changed(text: str, above: tuple[str, ...], place: str) -> str | None:
    """The text with the setting; `None` where no line can be found for it."""
    lines = text.splitlines(keepends=True)
    if has(text, FILE, 0, (*above, "chains")):
        at = locate(text, FILE, 0, (*above, "chains")).line or 0
        line, changed = re.subn(r"(\bchains:\s*)[\w'\"]+", rf"\g<1>{place}", lines[at - 1], count=1)
        return "".join([*lines[: at - 1], line, *lines[at:]]) if changed else None
    for key in ("storage", "name", "state"):
        if has(text, FILE, 0, (*above, key)):
            found = locate(text, FILE, 0, (*above, key))
            at, column = found.line or 0, found.column or 0
            indent = lines[at - 1][: column - 1]
            if indent.strip():
                return None  # several settings stand in one line
            return "".join([*lines[: at - 1], f"{indent}chains: {place}\n", *lines[at - 1 :]])
    return None
