"""Definitions of portals: roots without a source, which follow another dataset of the project.

What a portal follows stands in odfbuild.yaml alone, because its definition is for others to read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from odfbuild.errors import Location, ProjectError
from odfbuild.odf.model import AddPushSource, DatasetKind, SetPollingSource, SetTransform
from odfbuild.project.model import Config, Definition, WrongDefinition
from odfbuild.project.settings.personal import subjects_of

_FILE = "odfbuild.yaml"


def with_portals(
    definitions: Iterable[Definition], config: Config, wrong: list[WrongDefinition]
) -> Iterator[Definition]:
    """The definitions, with what portals follow; `wrong` gets portals that cannot be."""
    portals = {each.name.lower(): number for number, each in enumerate(config.portals)}
    for each in definitions:
        number = portals.pop(each.folded, None)
        if number is None:
            yield each
            continue
        error = _error(each, config, number)
        if error is not None:
            wrong.append(WrongDefinition(file=each.file, name=each.name, errors=(error,)))
            continue
        of = config.portals[number].of
        key = each.key and hashlib.blake2b(each.key + of.encode(), digest_size=16).digest()
        yield replace(each, portal_of=of, key=key)
    known = {each.name.lower() for each in wrong if each.name}
    for name, number in portals.items():
        # What a file defines that cannot be read is not known.
        if name not in known and all(each.name is not None for each in wrong):
            error = ProjectError(
                f"no dataset is called '{config.portals[number].name}', so it cannot be a portal",
                code="E1651",
                location=place_of_portal(config, number, "name"),
                help="define it as a root dataset without a source",
            )
            wrong.append(WrongDefinition(file=_FILE, name=name, errors=(error,)))


def place_of_portal(config: Config, number: int, key: str) -> Location:
    """Where odfbuild.yaml says something of a portal."""
    from odfbuild.project.config import place_in_config

    return place_in_config(config.root, "content", "portals", number, key)


def _error(definition: Definition, config: Config, number: int) -> ProjectError | None:
    snapshot = definition.snapshot
    sources = SetPollingSource | AddPushSource | SetTransform
    if snapshot.kind is not DatasetKind.Root or any(
        isinstance(each, sources) for each in snapshot.metadata
    ):
        return ProjectError(
            f"'{definition.name}' cannot be a portal: it has records of its own",
            code="E1652",
            location=definition.location,
            notes=(f"declared at {place_of_portal(config, number, 'name')}",),
            help="define it as a root dataset without source and query, or remove the entry of "
            "`portals` in odfbuild.yaml",
            dataset=definition.name,
        )
    of = config.portals[number].of
    personal = [*subjects_of(config.personal, of), *subjects_of(config.personal, definition.name)]
    if not personal:
        return None
    return ProjectError(
        f"'{definition.name}' cannot publish '{of}': it has personal columns",
        code="E1655",
        location=place_of_portal(config, number, "of"),
        notes=(f"personal: {', '.join(dict.fromkeys(personal))}",),
        help="let the portal follow a derivative without these columns",
        dataset=definition.name,
    )
