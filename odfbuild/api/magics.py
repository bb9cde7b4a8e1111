"""`%load_ext odfbuild` gives notebooks the magic `%%sql`.

IPython is imported only by who loads it: nothing here runs without.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any, NoReturn

from odfbuild.api.project import Project
from odfbuild.errors import OdfbuildError
from odfbuild.report.errors import render_error
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa


def load(shell: Any) -> None:
    """Register the magics in a shell of IPython."""
    shell.register_magic_function(SqlMagic(shell).run, "line_cell", "sql")


class Answer(Value):
    """What `%%sql` found; notebooks show its first rows, and which engine answered."""

    table: pa.Table
    engine: str

    def _repr_html_(self) -> str:
        from odfbuild.report.notebook import records_html

        return records_html(self.table, f"answered by {self.engine}")


class SqlMagic:
    """`%%sql` with the projects of a notebook, whose Spark goes on from cell to cell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._projects: dict[str, Project] = {}
        self._options = _options()

    def run(self, line: str, cell: str | None = None) -> Answer | None:
        """Ask committed datasets in SQL: the text of a cell, or of the line behind the options.

        `%%sql [-o NAME] [--engine duckdb|spark] [--at TIME] [--history] [-p PROJECT]`: `-o` puts
        the answer, an Arrow table, into a variable and shows nothing; `-p` is a variable with a
        `Project`, or a folder.
        """
        from IPython.core.error import UsageError

        try:
            given, rest = self._options.parse_known_args(shlex.split(line) if cell else [])
            query = cell or line
            if rest:
                raise ValueError(f"unknown: {' '.join(rest)}")
            project = self._project(given.project)
            table = project.sql(query, engine=given.engine, history=given.history, as_of=given.at)
            answered_by = (table.schema.metadata or {}).get(b"odfbuild.engine", b"Spark SQL")
        except OdfbuildError as error:
            # Not a traceback: what is wrong is the query, not code.
            raise UsageError("\n" + render_error(error)) from None
        except ValueError as error:
            raise UsageError(f"%%sql: {error}") from None
        if given.out is None:
            return Answer(table, answered_by.decode())
        self._shell.user_ns[given.out] = table
        return None

    def _project(self, given: str) -> Project:
        variable = self._shell.user_ns.get(given)
        if isinstance(variable, Project):
            return variable
        if given not in self._projects:
            self._projects[given] = Project(given)
        return self._projects[given]


class _Options(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _options() -> ArgumentParser:
    options = _Options(prog="%%sql", add_help=False)
    options.add_argument("-o", "--out", metavar="NAME")
    options.add_argument("--engine", choices=("duckdb", "spark"))
    options.add_argument("--at", metavar="TIME")
    options.add_argument("--history", action="store_true")
    options.add_argument("-p", "--project", default=".")
    return options
