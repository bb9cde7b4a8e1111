"""The datasets of others in a project: declared, read by a definition, or pulled before.

Each has a name here, under which its chain lies as any other, and a reference that says where it
comes from. Settings say so first; of chains without a definition, what their pull noted beside them
(`info/config`, as the reference implementation writes it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from odfbuild.exchange.repositories.dataset_config import read_config
from odfbuild.odf.references import RemoteAlias, RemoteId, RemoteRef, parse_remote_ref
from odfbuild.project.references import external_names, input_here, name_here, remote_reference
from odfbuild.project.settings.by_name import last_matching
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.project.model import Config, Definition
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


class ExternalDataset(Value, kw_only=True):
    """A dataset of others: its alias here, and where it comes from."""

    name: str
    reference: RemoteRef

    @property
    def repository(self) -> str | None:
        """The name of its repository; `None`: the reference is an address."""
        return self.reference.repo if isinstance(self.reference, RemoteAlias | RemoteId) else None

    def __str__(self) -> str:
        return str(self.reference)


def external_datasets(
    config: Config, definitions: Iterable[Definition] = (), workspace: Workspace | None = None
) -> dict[str, ExternalDataset]:
    """All that the project has of others, by name in lower case.

    `definitions` tell what is read without being declared, and chains of `workspace` that have no
    definition what was pulled.
    """
    found = {each.name.lower(): each for each in declared_datasets(config, definitions)}
    if workspace is not None:
        defined = {each.folded for each in definitions}
        for name in workspace.aliases():
            if name.lower() not in defined and name.lower() not in found:
                reference = pulled_from(workspace.dataset(name))
                if reference is not None:
                    found[name.lower()] = ExternalDataset(name=name, reference=reference)
    return found


def declared_datasets(
    config: Config, definitions: Iterable[Definition] = ()
) -> Iterator[ExternalDataset]:
    """What `external` declares, and what else definitions read of repositories; reads no chains."""
    if not (config.external or config.repositories):
        return
    for reference, name in external_names(config).items():
        yield ExternalDataset(name=name, reference=reference)
    told = {name.lower() for name in config.external}
    defined = {each.folded for each in definitions}
    for text in sorted({each for definition in definitions for each in definition.inputs}):
        name_or_none = input_here(text, config) if text.lower() not in defined else None
        if name_or_none is not None and name_or_none.lower() not in told:
            told.add(name_or_none.lower())
            asked = remote_reference(text, config)
            assert asked is not None, "it has a name here because it is of elsewhere"
            yield ExternalDataset(name=name_or_none, reference=asked)


def external_dataset(text: str, config: Config) -> ExternalDataset | None:
    """The external dataset that a reference or a name of `external` means; `None`: no such one.

    What has no name here, as `acme/did:odf:…`, is called by its reference.
    """
    by_name = {name.lower(): name for name in config.external}
    if text.lower() in by_name:
        name = by_name[text.lower()]
        text = config.external[name]
    reference = remote_reference(text, config)
    if reference is None:
        return None
    name = name_here(reference, external_names(config)) or text
    return ExternalDataset(name=name, reference=reference)


def published_at(store: DatasetStore, config: Config) -> str | None:
    """Where the data of a chain is published: where it comes from, else where it is pushed to."""
    found = origin(store, config) or next(iter(read_config(store.folder).push_aliases), None)
    if found is None and config.publish:
        rule = last_matching(config.publish, store.name)
        return f"{rule.to}/{store.name}" if rule else None
    return found


def origin(store: DatasetStore, config: Config) -> str | None:
    """The reference of a dataset that settings or its pull say to be of elsewhere."""
    found = external_dataset(store.name, config)
    reference = pulled_from(store) if found is None else found.reference
    return None if reference is None else str(reference)


def pulled_from(store: DatasetStore) -> RemoteRef | None:
    """Where a chain was pulled from first, as its `info/config` says; `None`: it does not."""
    aliases = read_config(store.folder).pull_aliases
    try:
        return parse_remote_ref(aliases[0]) if aliases else None
    except ValueError:
        return None
