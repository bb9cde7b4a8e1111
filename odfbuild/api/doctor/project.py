"""Checks of the project: definitions, chains and locks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.check import templates_of
from odfbuild.ingest.fetch.api_address import is_api
from odfbuild.ingest.fetch.database.address import is_database, keeps_slot
from odfbuild.ingest.fetch.kafka.address import is_kafka
from odfbuild.ingest.fetch.sftp_address import is_sftp
from odfbuild.ingest.secrets import required_variables
from odfbuild.inspect.health import Check, fail, ok, warn
from odfbuild.odf.model import (
    FetchStep,
    FetchStepContainer,
    FetchStepFilesGlob,
    FetchStepUrl,
    SetPollingSource,
)
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.project.model import Config, Project
    from odfbuild.store.workspace import Workspace


def definitions(project: Project) -> Iterator[Check]:
    """How many there are; loading them has found none that is wrong."""
    found = project.definitions
    yield ok("project", f"{project.config.name}: {len(found)} definitions, {project.config.root}")


_TREE_ENTRY = 70
"""Bytes that a file of a folder takes in each version of it that Git keeps, compressed."""

MANY_BLOCKS = 3_000
"""From so many files in one folder on, Git and its hosts advise against it."""


def chains(workspace: Workspace) -> Iterator[Check]:
    """Whether every chain can be read up to its head, and whether any outgrows Git."""
    found = workspace.projections()
    yield ok("chains", f"{len(found)} readable, {workspace.state}")
    long = {name: now.blocks for name, now in found.items() if now.blocks >= MANY_BLOCKS}
    if long and not workspace.stored_chains:
        name, blocks = max(long.items(), key=lambda each: each[1])
        others = f", and {count(len(long) - 1, 'dataset')} more than 3,000" if len(long) > 1 else ""
        yield warn(
            "chains in git",
            f"{name} has {blocks:,} blocks in one folder{others}: each commit of a new block adds "
            f"about {blocks * _TREE_ENTRY // 1000:,} KB",
            "odfbuild chains move --to storage, after naming a `storage` in odfbuild.yaml",
        )


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

    def look(url: str) -> str:
        from odfbuild.ingest.fetch.database.look import look_at_database

        return count(len(look_at_database(url, config.ingest, config.root).columns), "column")

    yield from _tried("databases", _addresses(found, is_database), look)


def topics(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether each topic of Kafka that sources read can be reached."""

    def look(url: str) -> str:
        from odfbuild.ingest.fetch.kafka.look import size_of_topic

        return count(size_of_topic(url, config.ingest, config.root), "message")

    yield from _tried("topics", _addresses(found, is_kafka), look)


def servers(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether each SFTP server that sources read lets us in, and has the files."""
    patterns = {
        name: step.path
        for name, step in found.items()
        if isinstance(step, FetchStepFilesGlob) and is_sftp(step.path)
    }

    def look(address: str) -> str:
        from odfbuild.ingest.fetch.sftp import look_at_sftp

        is_pattern = address in patterns.values()
        return count(look_at_sftp(address, config.ingest, is_pattern=is_pattern), "file")

    yield from _tried("sftp servers", {**_addresses(found, is_sftp), **patterns}, look)


def apis(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether each HTTP API that sources read answers with records."""
    steps = {
        name: step
        for name, step in found.items()
        if isinstance(step, FetchStepUrl) and is_api(step.url)
    }

    def look(name: str) -> str:
        from odfbuild.ingest.fetch.api_look import look_at_api

        return f"{count(len(look_at_api(steps[name], config.ingest).records), 'record')} in a page"

    yield from _tried("http apis", {name: name for name in steps}, look)


def _addresses(found: Mapping[str, FetchStep], is_asked: Callable[[str], bool]) -> dict[str, str]:
    """Addresses of one kind, by dataset."""
    return {
        name: step.url
        for name, step in found.items()
        if isinstance(step, FetchStepUrl) and is_asked(step.url)
    }


def _tried(title: str, asked: Mapping[str, str], look: Callable[[str], str]) -> Iterator[Check]:
    """What looking at addresses of datasets gives."""
    if not asked:
        yield ok(title, "no source needs any")
        return
    answers, problems = [], []
    for name, address in asked.items():
        try:
            answers.append(f"{name} ({look(address)})")
        except OdfbuildError as error:
            problems.append((name, error))
    if problems:
        said = [f"{name}: {'; '.join((e.message, *e.notes))}" for name, e in problems]
        yield fail(title, " | ".join(said), problems[0][1].help or "")
    else:
        yield ok(title, f"answered for {', '.join(answers)}")


def replication_slots(found: Mapping[str, FetchStep], config: Config) -> Iterator[Check]:
    """Whether servers keep changes for sources that read them, and not too much of their log."""
    asked = {
        name: step.url
        for name, step in found.items()
        if isinstance(step, FetchStepUrl) and keeps_slot(step.url)
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
