"""Run all rules of `project/lint` on a project, and apply the fixes that they offer."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from odfbuild.api.authoring.doubtful import doubtful_parts
from odfbuild.errors import Location, OdfbuildError, in_order
from odfbuild.project.lint.files import AmbiguousText, ambiguous_texts, flaws_of_file, quoted
from odfbuild.project.lint.finding import Finding, Flaw
from odfbuild.project.lint.queries import copied_queries, flaws_of_query
from odfbuild.project.lint.sources import flaws_of_definition
from odfbuild.project.load import query_files
from odfbuild.project.locate import locate_in_query
from odfbuild.project.model import Definition, Project
from odfbuild.project.rewrite import replace_text
from odfbuild.project.settings.lint import RULES, Rule
from odfbuild.project.source import TEMPLATE_SUFFIX, definition_files_of, read_sources, read_text
from odfbuild.survey.definitions import Definitions
from odfbuild.survey.faults import fault_of
from odfbuild.survey.queries import wrong_queries
from odfbuild.survey.unit_tests import unit_tests_of
from odfbuild.values import Value


class Linted(Value):
    """All findings, in order of file and line, and why some datasets could not be looked at."""

    findings: list[Finding]
    faults: list[OdfbuildError]

    @property
    def everything(self) -> list[Finding]:
        """The findings, and those who could not be looked at as such, too."""
        wrong = [_of_error(each, each.dataset) for each in self.faults]
        return sorted([*self.findings, *wrong], key=_order)


def lint(found: Definitions, chosen: Container[str] | None = None) -> Linted:
    """Look at the chosen datasets (`None`: all), whatever is wrong with one of them."""
    project = found.project
    faults = {n: list(e) for n, e in found.wrong.items() if chosen is None or n in chosen}
    definitions = [d for d in project.definitions if chosen is None or d.name in chosen]
    findings = _findings(found, definitions, faults)
    findings += _lone_queries(project) if chosen is None else []
    findings += _wrong(found, {each.name for each in definitions}, whole=chosen is None)
    # All datasets of a cycle have the same error.
    once = {id(each): each for errors in faults.values() for each in errors}
    return Linted(_once(findings), in_order(once.values()))


def findings_of_rules(found: Definitions, definitions: Sequence[Definition]) -> list[Finding]:
    """What the rules alone find in some definitions, as far as these are right."""
    return _once(_findings(found, definitions, {}))


def _findings(
    found: Definitions, definitions: Sequence[Definition], faults: dict[str, list[OdfbuildError]]
) -> list[Finding]:
    project = found.project
    findings = [
        _finding(project, definition, flaw, level)
        for definition, flaw in _flaws(definitions, found, faults)
        if (level := _level(project, flaw.rule)) != "off"
    ]
    return [*findings, *_ambiguous(project, definitions)]


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """Findings in order of place; of the instances of a template, the first one is enough."""
    unique = {_what(each): each for each in findings[::-1]}
    return sorted(unique.values(), key=_order)


def fix(found: Definitions, findings: Sequence[Finding]) -> list[str]:
    """Fix what can be fixed without changing the data; names of the files written."""
    config = found.project.config
    files = sorted({each.place.file for each in findings if each.can_fix})
    for file in files:
        text = read_text(config.root / file, file)
        replace_text(config.root / file, quoted(text, [*ambiguous_texts(text, file)]), "lint --fix")
    return files


def _flaws(
    definitions: Sequence[Definition], found: Definitions, faults: dict[str, list[OdfbuildError]]
) -> Iterator[tuple[Definition, Flaw]]:
    """Definitions and their flaws; where a rule itself fails, `faults` gets to know."""
    for definition in definitions:
        name = definition.name
        try:
            flaws = (
                *flaws_of_definition(definition.snapshot),
                *flaws_of_query(definition),
                *doubtful_parts(definition),
            )
        except Exception as error:  # whatever is wrong with one, the others are looked at
            faults[name] = [fault_of(found.project.config.cache, "looking at", name, error)]
            continue
        for flaw in flaws:
            yield definition, flaw
    yield from copied_queries(definitions)
    for _, group in groupby(definitions, key=lambda each: each.file):
        of_file = list(group)
        everything = [d for d in found.project.definitions if d.file == of_file[0].file]
        for flaw in flaws_of_file(everything):
            yield everything[0], flaw


def _wrong(found: Definitions, names: Collection[str], *, whole: bool) -> Iterator[Finding]:
    """What `validate` refuses in queries and their unit tests: no level silences it.

    With `whole`, also in tests of which the dataset is not known.
    """
    for error in unit_tests_of(found)[1]:
        if error.dataset in names or (whole and error.dataset is None):
            yield _of_error(error, error.dataset)
    for name, errors in wrong_queries(found).items():
        yield from (_of_error(each, name) for each in errors if name in names)


def _of_error(error: OdfbuildError, dataset: str | None) -> Finding:
    rule, place = Rule(error.code, "", ""), error.location or Location("")
    return Finding(
        rule, "error", error.message, error.help or "", place, dataset, tuple(error.notes)
    )


def _ambiguous(project: Project, definitions: Sequence[Definition]) -> Iterator[Finding]:
    rule = RULES["ambiguous-text"]
    level = _level(project, rule.name)
    files = dict.fromkeys(each.file for each in definitions)
    for file in () if level == "off" else files:
        if file.endswith(TEMPLATE_SUFFIX):
            continue  # YAML only once it is rendered
        text = read_text(project.config.root / file, file)
        lines = text.split("\n")
        for each in ambiguous_texts(text, file):
            place = Location(file, each.line, each.column, lines[each.line - 1], len(each.text))
            yield _ambiguous_finding(rule, level, each, place)


def _ambiguous_finding(rule: Rule, level: str, each: AmbiguousText, place: Location) -> Finding:
    return Finding(
        rule,
        level,
        f"'{each.text}' is text here, and {each.meaning} to readers of YAML 1.1",
        f'write "{each.text}", or let `odfbuild lint --fix` do it',
        place,
        can_fix=True,
    )


def _lone_queries(project: Project) -> Iterator[Finding]:
    """Files with queries that are read by nobody, maybe as they are called otherwise."""
    rule = RULES["lone-query"]
    level = _level(project, rule.name)
    config = project.config
    folder = config.datasets if level != "off" else None
    for path in query_files(folder, config.boundary.check_open) if folder else ():
        file = os.path.relpath(path, config.root)
        wanted = definition_files_of(file)
        if not any((config.root / each).exists() for each in wanted):
            yield Finding(
                rule,
                level,
                f"no definition has this query: there is no {wanted[0]}",
                "call it as the file of the definition that it belongs to, or move it out of the "
                "folder of definitions",
                Location(file),
            )


def _finding(project: Project, definition: Definition, flaw: Flaw, level: str) -> Finding:
    return Finding(
        RULES[flaw.rule],
        level,
        flaw.message,
        flaw.help,
        _place(project, definition, flaw),
        definition.name,
        flaw.notes,
    )


def _place(project: Project, definition: Definition, flaw: Flaw) -> Location:
    if flaw.query is not None:
        found = locate_in_query(project, definition, flaw.path, *flaw.query)
        if found is not None:
            return replace(found, length=flaw.length)
    sources = read_sources(project.config, definition.file)
    source = next((each for each in sources if each.instance == definition.instance), sources[0])
    path = ("content", *flaw.path)
    return source.locate(definition.document, path, value=flaw.length > 1)


def _level(project: Project, rule: str) -> str:
    return project.config.lint.get(rule, "warn")


def _what(finding: Finding) -> tuple[object, ...]:
    place = finding.place
    message = "" if finding.rule.name else finding.message
    return finding.rule.code, place.file, place.line, message


def _order(finding: Finding) -> tuple[str, int, int, str]:
    place = finding.place
    return place.file, place.line or 0, place.column or 0, finding.rule.code
