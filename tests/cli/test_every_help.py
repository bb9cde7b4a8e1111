"""The help of every command, by the program itself, in a pipe and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from odfbuild.cli.main import app
from tests.cli.real import WAYS, Said, at_once
from tests.report.golden import FOLDER, assert_golden

pytestmark = pytest.mark.long


def _verbs(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Words of all commands and groups that help lists."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield (*path, name)
            if hasattr(command, "commands"):
                yield from _verbs(command, *path, name)


COMMANDS = [(), *_verbs(typer.main.get_command(app))]


@pytest.fixture(scope="module")
def helps(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[int, Said]]:
    """What `--help` says of each command, far from any project."""
    nowhere = tmp_path_factory.mktemp("nowhere")
    return at_once([(nowhere, [*words, "--help"], {}) for words in COMMANDS])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_as_reviewed(
    helps: Mapping[str, Mapping[int, Said]], words: tuple[str, ...], way: str
) -> None:
    said = helps[way][COMMANDS.index(words)]
    assert said.code == 0
    assert said.text == said.plain
    assert_golden(f"help/{'-'.join(words) or 'odfbuild'}.txt", said.text)


def test_every_help_that_was_reviewed_is_of_a_command() -> None:
    known = {"-".join(words) or "odfbuild" for words in COMMANDS}
    assert {file.stem for file in (FOLDER / "help").iterdir()} == known


def test_every_command_is_described() -> None:
    reference = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text("utf-8")
    for words in COMMANDS[1:]:
        assert f"odfbuild {words[0]}" in reference
        assert all(word in reference for word in words)
