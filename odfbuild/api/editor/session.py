"""A project that editors look at: what they hold of its files, and what was found in it last.

`check_file` looks at one file, while somebody types; `check` looks at everything, as `validate`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.api.editor.diagnostics import Found, by_file
from odfbuild.api.editor.places import open_file
from odfbuild.api.editor.positions import one_break
from odfbuild.api.editor.subjects import View
from odfbuild.errors import OdfbuildError
from odfbuild.project.config import FILE
from odfbuild.project.lint.finding import Finding
from odfbuild.project.load import is_unit_test_file
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.source import (
    QUERY_SUFFIXES,
    TEMPLATE_SUFFIX,
    YAML_SUFFIXES,
    definition_files_of,
    query_file_of,
)
from odfbuild.project.unsaved import reading_unsaved
from odfbuild.python_gc import paused_collector
from odfbuild.survey.definitions import Definitions, look_at_definitions
from odfbuild.survey.validation import (
    OF_ALL,
    all_that_is_wrong,
    unit_tests_again,
    with_file_again,
)
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.api.project import Project
    from odfbuild.plan.explain import Explanation
    from odfbuild.plan.model import Plan


Flaws = Mapping[str, Sequence[Finding]]
"""What `lint` finds, by file."""


class Look(Value):
    """What a look at a project found; `found` is `None` where odfbuild.yaml is wrong.

    `flaws` are what `lint` finds in the files that editors hold.
    """

    found: Definitions | None
    errors: Found
    flaws: Flaws


class Session:
    """The state of one project between questions."""

    def __init__(self, root: Path, given: Overrides = NO_OVERRIDES) -> None:
        self.root = root
        self.given = given
        self.opened: dict[str, str] = {}
        self.found: Definitions | None = None
        self.errors: Found = {}
        self.flaws: Flaws = {}
        self.plan: Plan | None = None
        self._project: Project | None = None

    # --- What editors hold ---

    def holds(self, path: str, text: str) -> None:
        """An editor holds this text of a file."""
        self.opened[path] = one_break(text)

    def closed(self, path: str) -> None:
        """What is saved of a file counts again."""
        self.opened.pop(path, None)

    def unsaved(self) -> dict[str, str]:
        """Texts that differ from what is saved, by path."""
        # A copy: other threads ask, too.
        held = list(self.opened.items())
        return {path: text for path, text in held if not _is_saved(path, text)}

    def file_of(self, path: str) -> str:
        """The path of a file below the root."""
        return os.path.relpath(path, self.root)

    # --- What is wrong ---

    def check(self, is_over: Callable[[], bool] = lambda: False) -> Look | None:
        """Look at everything; `None` where it `is_over` before that, as after a newer edit."""
        with reading_unsaved(self.unsaved()), paused_collector():
            try:
                found = look_at_definitions(self.root, self.given)
            except OdfbuildError as error:
                return Look(None, by_file([error]), {})
            if is_over():
                return None
            held = map(self.file_of, self.opened.copy())
            return Look(found, by_file(all_that_is_wrong(found)), _flaws(found, held))

    def take(self, look: Look) -> None:
        """Remember what a look found; definitions of before stay where there are none now."""
        self.found = look.found or self.found
        self.errors = look.errors
        self.flaws = look.flaws

    def check_file(self, path: str) -> list[str]:
        """Look again at one file that was edited, and at the definition or query beside it.

        Those of them in which something is or was wrong, and this one: `errors` has all of it.
        None where only `check` tells what is wrong, as in odfbuild.yaml.
        """
        found = self.found
        file = self._definition_of(path, found) if found is not None else None
        if found is None or file is None:
            return []
        files = [each for each in (file, query_file_of(file)) if each is not None]
        wrong = [each for each in files if self.errors.get(each)]
        before = [each for name in wrong for each in self.errors[name]]
        with reading_unsaved(self.unsaved()):
            if is_unit_test_file(file):
                errors = unit_tests_again(found, file)
            else:
                self.found, errors = with_file_again(found, file)
                errors += [each for each in before if each.code in OF_ALL]
                flaws = _flaws(self.found, files)
                self.flaws = {**self.flaws, **dict.fromkeys(files, ()), **flaws}
        now = by_file(errors)
        self.errors = {**self.errors, **{each: now.get(each, []) for each in files}}
        return sorted({*wrong, *now, self.file_of(path)})

    def _definition_of(self, path: str, found: Definitions) -> str | None:
        """The definition or unit tests that a file is or belongs to; `None`: it is neither."""
        if not path.startswith(f"{found.project.config.datasets}/") or path.endswith(f"/{FILE}"):
            return None
        named = _defining(self.file_of(path))
        return next((each for each in named if each in found.by_file or len(named) == 1), None)

    # --- Questions ---

    def view(self, path: str) -> View | None:
        """A file within the project; `None` before anything of the project is known."""
        if self.found is None or path not in self.opened:
            return None
        with reading_unsaved(self.opened):
            opened = open_file(self.root, self.file_of(path))
        return None if opened is None else View(self.found, opened)

    # --- Plans ---

    def keep(self, name: str, text: str) -> Path:
        """A disposable file with a text, for editors that show files only; its path."""
        from odfbuild.store.disposable import cache_folder, prepare_cache_folder
        from odfbuild.store.files import write_file

        folder = cache_folder(self.root) / "editor"
        prepare_cache_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        write_file(folder / name, text.encode())
        return folder / name

    def make_plan(self) -> Plan | None:
        """The plan of what is saved; `None` where odfbuild.yaml is wrong."""
        from odfbuild.survey.survey import survey

        try:
            return survey(self.root, None, self.given).plan
        except OdfbuildError:
            return None

    def planned(self, names: tuple[str, ...]) -> str:
        """The plan of some datasets as text, with what is not saved yet; raises as `survey`."""
        from odfbuild.plan.graph.selection import Selection
        from odfbuild.report.plan.text import render_plan
        from odfbuild.survey.survey import PlanRequest, survey

        request = PlanRequest(selection=Selection(select=names))
        with reading_unsaved(self.unsaved()):
            return render_plan(survey(self.root, request, self.given).plan, full=True)

    def tested(self, names: tuple[str, ...]) -> str:
        """What unit tests of datasets show, as text; Spark starts, and stays for the next ones."""
        from odfbuild.api.project import Project
        from odfbuild.report.findings.unit_tests import render_unit_tests

        if self._project is None:
            self._project = Project.given(self.root, self.given)
        with reading_unsaved(self.unsaved()):
            return render_unit_tests(self._project.test(*names, unit=True))

    def close(self) -> None:
        """End Spark, if unit tests started it."""
        if self._project is not None:
            self._project.close()
            self._project = None

    def explained(self, name: str) -> str:
        """Why a dataset is stale, or not, as text; raises as `survey`."""
        from odfbuild.report.explanation import render_explanation

        with reading_unsaved(self.unsaved()):
            return render_explanation(self._explanation(name))

    def _explanation(self, name: str) -> Explanation:
        from odfbuild.inspect.receipts import with_receipts
        from odfbuild.plan.explain import explain
        from odfbuild.survey.names import one_of
        from odfbuild.survey.survey import survey

        found = survey(self.root, None, self.given)
        present = one_of(found.plan.names, found.plan.called(name) or name)
        return with_receipts(
            explain(found.plan, present, found.projections),
            found.project.config,
            found.workspace,
            found.renames,
        )


def _flaws(found: Definitions, files: Iterable[str]) -> Flaws:
    """What `lint` finds in files; of a template, in the first of its instances."""
    from odfbuild.api.authoring.linting import findings_of_rules

    defining = {each for file in files for each in _defining(file)}
    of_files = [each for file in sorted(defining) for each in found.by_file.get(file, ())]
    first = {(each.file, each.document): each for each in reversed(of_files)}
    flaws: dict[str, list[Finding]] = {}
    for each in findings_of_rules(found, list(first.values())):
        flaws.setdefault(each.place.file, []).append(each)
    return flaws


def _defining(file: str) -> tuple[str, ...]:
    """The definition file that a file is, or those one of which it is the query of."""
    if file.endswith(QUERY_SUFFIXES):
        return definition_files_of(file)
    return (file,) if file.endswith((*YAML_SUFFIXES, TEMPLATE_SUFFIX)) else ()


def _is_saved(path: str, text: str) -> bool:
    try:
        return one_break(Path(path).read_bytes().decode()) == text
    except (OSError, UnicodeDecodeError):
        return False
