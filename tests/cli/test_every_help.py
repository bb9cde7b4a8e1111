"""The help of every command says what it does, and fits the width of a terminal.

Three pages are kept as a person reviewed them; of all others, facts are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from odfbuild.cli.main import app, run
from tests.cli.real import WAYS
from tests.report.golden import FOLDER, assert_golden

_REVIEWED = ("", "plan", "watermark set")
_WIDTHS = (70, 80)


def _commands(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """All commands and groups that help lists, by their words."""
    yield " ".join(path), command
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands(each, *path, name)


COMMANDS = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", _REVIEWED)
def test_help_is_as_reviewed(tmp_path: Path, words: str, way: str) -> None:
    said = WAYS[way](tmp_path, [*words.split(), "--help"], None)
    assert said.code == 0
    assert said.text == said.plain
    assert_golden(f"help/{words.replace(' ', '-') or 'odfbuild'}.txt", said.text)


def test_every_help_that_was_reviewed_is_compared() -> None:
    kept = {file.stem for file in (FOLDER / "help").iterdir()}
    assert kept == {words.replace(" ", "-") or "odfbuild" for words in _REVIEWED}


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_option_is_described_in_whole_sentences(words: str) -> None:
    command = COMMANDS[words]
    described = {"the command": command.help}
    described |= {
        each.name: getattr(each, "help", None)
        for each in command.params
        if not getattr(each, "hidden", False)
    }
    for name, text in described.items():
        assert text, name
        assert text[0] == text[0].upper(), (name, text)
        assert text.rstrip().endswith("."), (name, text)


@pytest.mark.parametrize("words", COMMANDS)
def test_help_fits_the_terminal_and_breaks_no_word(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {}
    for width in _WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        assert run([*words.split(), "--help"]) == 0
        said[width] = capsys.readouterr().out
        assert [line for line in said[width].splitlines() if len(line) > width] == []
    # The same words in the same order at each width, so none is broken or left out.
    narrow, wide = (text.split() for text in said.values())
    assert narrow == wide
    whole = " ".join(wide)
    command = COMMANDS[words]
    for text in [command.help, *(getattr(each, "help", "") for each in command.params)]:
        assert " ".join((text or "").split()) in whole


def test_every_command_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text("utf-8")
    for words in filter(None, COMMANDS):
        first, *more = words.split()
        assert f"odfbuild {first}" in reference
        assert all(word in reference for word in more)
