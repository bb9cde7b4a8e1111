"""The program: global options, the verbs, and how errors become exit codes.

Every verb lives in a module of its own (`verbs.py` lists them) and imports what is heavy when it is
called, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from odfbuild.cli import complete
from odfbuild.cli.console import Console, take_any_text
from odfbuild.cli.context import Context
from odfbuild.cli.defaults import VerbGroup, write_commands
from odfbuild.cli.exit_codes import EXIT_INTERRUPTED
from odfbuild.cli.json_lines import OPTION as JSON_LINES
from odfbuild.cli.options import FORMAT_VARIABLE
from odfbuild.cli.runner import guarded_output
from odfbuild.cli.verbs import SECTIONS, Verbs
from odfbuild.errors import OdfbuildError
from odfbuild.project.overrides import Overrides
from odfbuild.store.branches import BranchName
from odfbuild.store.lock_holders import introduce


class GlobalOptionsGroup(VerbGroup):
    """A group that takes its own options before and after the name of the command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Verbs()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does; without making it, which takes longer than all the rest."""
        for title, verbs in SECTIONS.items():
            outlines = ((name, self.commands.outline(name)) for name in verbs)
            write_commands(formatter, title, outlines)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the options of the program in front."""
        return super().parse_args(ctx, globals_first(args, *self._own_options(ctx)))

    def _own_options(self, ctx: Any) -> tuple[set[str], set[str]]:
        """Names of the options that take a value, and of those that do not."""
        valued: set[str] = set()
        plain: set[str] = set()
        for parameter in self.get_params(ctx):
            # Every command has its own help.
            if parameter.param_type_name != "option" or "--help" in parameter.opts:
                continue
            takes_none = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
            (plain if takes_none else valued).update(parameter.opts)
        return valued, plain


def globals_first(args: Iterable[str], valued: set[str], plain: set[str]) -> list[str]:
    """`args` with the options of the program in front, in their order; what is after `--` stays."""
    ours: list[str] = []
    rest: list[str] = []
    remaining = iter(args)
    for arg in remaining:
        if arg == "--":
            rest += [arg, *remaining]
        elif arg in plain or (arg.startswith("-v") and set(arg[1:]) == {"v"}):
            ours.append(arg)
        elif arg in valued:
            ours += [arg, *_next(remaining)]
        elif arg.partition("=")[0] in valued and arg.startswith("--"):
            ours.append(arg)
        else:
            rest.append(arg)
    return ours + rest


def _next(remaining: Any) -> list[str]:
    value = next(remaining, None)
    return [] if value is None else [value]


_EPILOG = (
    "Exit codes: 0 done, no changes; 1 failed; 2 there are changes or drift (--detailed-exitcode); "
    "3 data differs from what was committed; 4 some datasets committed, some not; "
    "5 another writer changed a dataset, nothing was written to it; 9 another process holds its "
    "lock; "
    "64 wrong usage; 130 interrupted."
)

_VARIABLE = "ODFBUILD_VAR_"

app = typer.Typer(
    name="odfbuild",
    cls=GlobalOptionsGroup,
    help="Build datasets from definitions: plan changes, apply them, verify the history.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from odfbuild.version import __version__

        Console().result(f"odfbuild {__version__}")
        raise typer.Exit


@app.callback()
def _globals(
    context: typer.Context,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-C",
            envvar="ODFBUILD_DIRECTORY",
            help="Folder of the project (default: the current folder or one above it).",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            "-e",
            "--target",
            "-t",
            metavar="NAME",
            autocompletion=complete.environments,
            envvar="ODFBUILD_ENV",
            help="Use this environment: its variables and chains.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            "-b",
            metavar="NAME",
            autocompletion=complete.branches,
            envvar="ODFBUILD_BRANCH",
            help="Work in this branch: other readers see the heads as they were.",
        ),
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="NAME=VALUE", help="Set a variable."),
    ] = None,
    vars_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--vars-file",
            metavar="FILE",
            envvar="ODFBUILD_VARS_FILE",
            help="Set variables from this file.",
        ),
    ] = None,
    no_color: Annotated[
        bool, typer.Option("--no-color", envvar="ODFBUILD_NO_COLOR", help="No colour.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", envvar="ODFBUILD_QUIET", help="No progress.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Show more detail; repeat for more.")
    ] = 0,
) -> None:
    given = Overrides(
        env=env or None,
        branch=BranchName.parse(branch) if branch else None,
        files=tuple(vars_file or ()),
        process=tuple(
            (name.removeprefix(_VARIABLE), value)
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLE) and name != _VARIABLE
        ),
        values=tuple(_assignment(text) for text in var or ()),
    )
    introduce(f"odfbuild {context.invoked_subcommand}")
    _show_log(verbose=verbose > 0)
    context.obj = Context(Console(no_color, -1 if quiet else verbose), directory, given)


def _show_log(*, verbose: bool) -> None:
    """Show on stderr what modules log, as where a slower way goes on, if that is asked for.

    What sqlglot does not understand is told by errors of ours.
    """
    import logging

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    if not verbose:
        return
    log = logging.getLogger("odfbuild")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.INFO)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not of the form name=value", param_hint="--var")
    return name, value


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    # Nothing is worth being looked for among what the end of the process frees. DuckDB complains of
    # what it cannot free.
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code, and never raises for what a user did."""
    if os.environ.get(complete.ASKED_BY) == "complete_bash":
        return complete.answer_bash(lambda: app([], prog_name="odfbuild"))
    take_any_text()
    with guarded_output():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    console = Console("--no-color" in arguments)
    try:
        code = app(arguments or ["--help"], prog_name="odfbuild", standalone_mode=False)
    except typer.Exit as leave:
        return int(leave.exit_code)
    except typer.Abort:
        return EXIT_INTERRUPTED
    except typer.TyperException as error:
        from odfbuild.cli.usage import usage_error

        return _failed(usage_error(error), console, arguments)
    except OdfbuildError as error:
        return _failed(error, console, arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough, as with `odfbuild log x | head`.
        sys.stderr.close()
        return 0
    except Exception as error:
        return _failed(_defect(error, arguments), console, arguments)
    return code if isinstance(code, int) else 0


def _failed(error: OdfbuildError, console: Console, arguments: list[str]) -> int:
    from odfbuild.cli import github

    if JSON_LINES in arguments:
        from odfbuild.cli.json_lines import end_without_run

        end_without_run(error, error.exit_code, error.message)
    elif _wants_json(arguments):
        from odfbuild.report.errors import error_to_data

        console.data({"errors": error_to_data(error)})
    console.error(error)
    github.tell_errors(console, [error], github.root_of_project(arguments))
    return error.exit_code


def _defect(error: Exception, arguments: list[str]) -> OdfbuildError:
    """An exception that nobody foresaw; its details go to the project's cache, if it has one."""
    import tempfile

    from odfbuild.cli import github
    from odfbuild.ingest.unexpected_errors import unforeseen
    from odfbuild.store.disposable import cache_folder

    root = github.root_of_project(arguments)
    cache = cache_folder(root) if root is not None else None
    folder = cache if cache is not None and cache.is_dir() else Path(tempfile.gettempdir())
    return unforeseen(error, folder, f"doing `odfbuild {' '.join(arguments[:1])}`")


def _wants_json(arguments: list[str]) -> bool:
    """Whether the result was to be JSON, which whoever reads it can still have then."""
    given = "--json" in arguments or "--format=json" in arguments
    named = any(pair == ("--format", "json") for pair in pairwise(arguments))
    by_variable = os.environ.get(FORMAT_VARIABLE) == "json"
    return given or named or (by_variable and _takes_form(arguments))


def _takes_form(arguments: list[str]) -> bool:
    """Whether the command that these arguments name has a form that one may choose."""
    commands: Mapping[str, Any] = Verbs()
    command = None
    for word in arguments:
        if word in commands:
            command = commands[word]
            commands = getattr(command, "commands", {})
    return command is not None and any(each.name == "format" for each in command.params)
