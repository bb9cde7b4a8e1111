"""Chains that are gone: of defined datasets that others here have read, and that have no chain now.

A new chain would be another dataset, with another identity, from which no reader could go on. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from odfbuild.errors import PlanError
from odfbuild.odf.identity import DatasetAlias
from odfbuild.odf.model import SetTransform
from odfbuild.plan.inputs import ChainIdentities
from odfbuild.project.model import Definition
from odfbuild.wording import named


def lost_chains(
    definitions: Iterable[Definition],
    identities: ChainIdentities,
    rebuilt: Collection[str],
    folder: str,
) -> dict[str, PlanError]:
    """E0318 for each dataset whose chain is gone, by name; `folder` is that of the chains.

    Readers that are `rebuilt` (in lower case) need no old chain.
    """
    missing = {each.folded: each for each in definitions if each.folded not in identities}
    if not missing:
        return {}
    readers: dict[str, dict[str, str]] = {}
    for each in definitions:
        # Chains are read only where an input lacks its own.
        if not any(ref.lower() in missing for ref in each.inputs):
            continue
        if each.folded not in missing and each.folded not in rebuilt:
            for name, identity in _lost_inputs(each, identities, missing):
                readers.setdefault(name, {})[each.name] = identity
    return {
        missing[key].name: _error(missing[key], found, folder) for key, found in readers.items()
    }


def _lost_inputs(
    reader: Definition, identities: ChainIdentities, missing: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Inputs without a chain that the chain of a dataset names by identity: names and DIDs."""
    defined = next((e for e in reader.snapshot.metadata if isinstance(e, SetTransform)), None)
    committed = identities.states[reader.folded].transform
    if defined is None or committed is None:
        return
    before = {
        each.alias or str(each.dataset_ref): str(each.dataset_ref) for each in committed.inputs
    }
    for each in defined.inputs:
        ref = each.dataset_ref
        identity = before.get(each.alias or str(ref))
        if (
            isinstance(ref, DatasetAlias)
            and ref.folded in missing
            and identity is not None
            and identities.alias(identity) == identity
        ):
            yield ref.folded, identity


def _error(lost: Definition, readers: dict[str, str], folder: str) -> PlanError:
    names = sorted(readers)
    place = f"{folder}/{lost.name}"
    allow = " ".join(f"--allow rebuild:{name}" for name in names)
    return PlanError(
        f"the chain of '{lost.name}' is gone, and {named(names)} read it before",
        code="E0318",
        location=lost.location,
        dataset=lost.name,
        notes=(
            f"it was the dataset {readers[names[0]]}",
            "a new chain would be another dataset, from which its readers cannot go on",
        ),
        help=f"bring it back: `git checkout HEAD -- {place}`, or another commit that has it (`git "
        f"log -- {place}`), or a backup; to start it over, rebuild its readers: {allow}",
    )
