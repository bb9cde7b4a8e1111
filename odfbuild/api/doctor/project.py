"""Checks of the project: definitions, chains and locks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.check import templates_of
from odfbuild.ingest.fetch.database.address import is_database, reads_changes
from odfbuild.ingest.secrets import required_variables
from odfbuild.inspect.health import Check, fail, ok, warn
from odfbuild.odf.model import FetchStep, FetchStepContainer, FetchStepUrl, SetPollingSource
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.project.model import Config, Project
    from odfbuild.store.workspace import Workspace


def definitions(project: Project) -> Iterator[Check]:
    """How many there are; loading them has found none that is wrong."""
    found = project.definitions
    yield ok("project", f"{project.config.name}: {len(found)} definitions, {project.config.root}")


def chains(workspace: Workspace) -> Iterator[Check]:
    """Whether every chain can be read up to its head."""
    found = workspace.projections()
    yield ok("chains", f"{len(found)} readable, {workspace.state}")


def identities(project: Project, workspace: Workspace) -> Iterator[Check]:
    """Whether the private keys of the project's own datasets are here."""
    ours = {each.folded for each in project.definitions}
    found = {
        name: workspace.private_keys.place(state.dataset_id)
        for name, state in workspace.readable().items()
        if name.lower() in ours
    }
    missing = [name for name, place in found.items() if place is None]
    if missing:
        some = f"{', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}"
        detail = f"no private key here of {some}: `push` does not sign"
        yield warn("identities", detail, "odfbuild key import FILE, a file of `key export`")
    else:
        yield ok("identities", f"private keys of {count(len(found), 'dataset')}")


def locks(workspace: Workspace) -> Iterator[Check]:
    """Who works on datasets now."""
    found = workspace.holders(workspace.aliases())
    if found:
        who = ", ".join(f"process {each.pid} on {', '.join(each.aliases)}" for each in found)
        yield warn("locks", f"at work: {who}", "wait, or run `odfbuild lock list`")
    else:
        yield ok("locks", "no dataset is locked")


def sources(project: Project) -> Mapping[str, FetchStep]:
    """How each dataset that polls a source fetches it."""
    return {
        definition.name: event.fetch
        for definition in project.definitions
        for event in definition.snapshot.metadata
        if isinstance(event, SetPollingSource)
    }


def variables(found: Mapping[str, FetchStep]) -> Mapping[tuple[str, ...], list[str]]:
    """Variables of the environment that sources need, as alternatives, with who needs them."""
    needed: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, step in found.items():
        for _, text in templates_of(step):
            for names in required_variables(text):
                needed[names].append(name)
    return needed


def containers(found: Mapping[str, FetchStep]) -> list[str]:
    """Datasets whose source is a container."""
    return [name for name, step in found.items() if isinstance(step, FetchStepContainer)]


def databases(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether each database that sources read can be reached, and has the table."""
    asked = {
        name: step.url
        for name, step in found.items()
        if isinstance(step, FetchStepUrl) and is_database(step.url)
    }
    if not asked:
        yield ok("databases", "no source needs any")
        return
    from odfbuild.ingest.fetch.database.look import look_at_database

    answers, problems = [], []
    for name, url in asked.items():
        try:
            looked = look_at_database(url, config.ingest, config.root)
        except OdfbuildError as error:
            problems.append((name, error))
        else:
            answers.append(f"{name} ({count(len(looked.columns), 'column')})")
    if problems:
        said = [f"{name}: {'; '.join((e.message, *e.notes))}" for name, e in problems]
        yield fail("databases", " | ".join(said), problems[0][1].help or "")
    else:
        yield ok("databases", f"answered for {', '.join(answers)}")


def replication_slots(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether servers keep changes for sources that read them, and not too much of their log."""
    asked = {
        name: step.url
        for name, step in found.items()
        if isinstance(step, FetchStepUrl) and reads_changes(step.url)
    }
    if not asked:
        return
    from odfbuild.ingest.fetch.database.changes.manage import ChangesSource

    warnings = []
    for name, url in asked.items():
        try:
            warnings.append(ChangesSource(name, url, config.ingest).status().warning)
        except OdfbuildError as error:
            warnings.append(f"{name}: {error.message}")
    if any(warnings):
        detail = " | ".join(filter(None, warnings))
        yield warn("replication slots", detail, "odfbuild source status")
    else:
        yield ok("replication slots", f"ready for {', '.join(asked)}")
