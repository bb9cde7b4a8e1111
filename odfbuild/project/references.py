"""What references to datasets mean in a project: which lie elsewhere, and their names here.

`a/b` is the dataset `b` of the repository `a` where odfbuild.yaml has such a repository, else the
dataset `b` of the account `a`. Definitions stay plain Open Data Fabric, where a reference is a name
or a DID: `repo/account/name`, `repo/did:odf:…` and addresses get a name by `external`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from odfbuild.errors import ProjectError
from odfbuild.odf.identity import DatasetAlias, is_alias, is_name
from odfbuild.odf.model import MetadataEvent, SetTransform
from odfbuild.odf.references import (
    AmbiguousAlias,
    RemoteAlias,
    RemoteId,
    RemoteRef,
    Url,
    parse_any_ref,
)
from odfbuild.project.model import Definition
from odfbuild.project.yaml.source import locate
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.errors import Location
    from odfbuild.project.settings.content import Content


_FOLDERS = ("./", "../", "/", "~")
"""What addresses of folders begin with that are no URLs."""


def remote_reference(text: str, content: Content) -> RemoteRef | None:
    """The dataset elsewhere that `text` refers to; `None`: one of this project.

    `ValueError` when it is no reference. A folder counts as an address.
    """
    if text.startswith(_FOLDERS):
        return Url(text)
    found = parse_any_ref(text)
    if isinstance(found, AmbiguousAlias):
        return known if isinstance(known := found.resolve(_names(content)), RemoteAlias) else None
    if isinstance(found, RemoteId):
        return found if found.repo else None
    return found if isinstance(found, RemoteAlias | Url) else None


def external_names(content: Content) -> dict[RemoteRef, str]:
    """The names that `external` gives, by reference."""
    found = {remote_reference(text, content): name for name, text in content.external.items()}
    return {reference: name for reference, name in found.items() if reference is not None}


def name_here(reference: RemoteRef, names: Mapping[RemoteRef, str]) -> str | None:
    """The alias of a dataset of elsewhere in this project; `names` are those of `external`.

    `acme/prices` is called that, `acme/anna/prices` `anna/prices`, and an address by its last part.
    `None`: only its owner can tell.
    """
    if reference in names:
        return names[reference]
    if isinstance(reference, RemoteAlias):
        alias = reference.alias
        return str(alias) if alias.account else f"{reference.repo}/{alias}"
    if isinstance(reference, Url):
        last = reference.text.partition("?")[0].rstrip("/").rpartition("/")[2]
        return last if is_name(last) else None
    return None


def input_here(text: str, content: Content) -> str | None:
    """The alias here of an external dataset that a definition reads; `None`: it names none."""
    if not content.repositories:
        return None
    try:
        reference = remote_reference(text, content)
    except ValueError:
        return None
    return name_here(reference, external_names(content)) if reference is not None else None


def taken_name(name: str, content: Content) -> str | None:
    """Why no dataset of the project can have this name; `None`: it can."""
    if name.lower() in map(str.lower, content.external):
        return "`external` in odfbuild.yaml calls a dataset of others so"
    account = name.lower().partition("/")[0] if "/" in name else None
    if account is not None and account in map(str.lower, content.repositories):
        return f"'{name.partition('/')[0]}' is a repository, so that names a dataset of others"
    return None


def with_names_here(definitions: Iterable[Definition], content: Content) -> Iterator[Definition]:
    """The definitions, with inputs by the names that `external` gives where they say others."""
    names: dict[str, str] = {}
    for reference, name in external_names(content).items():
        text = str(reference.id if isinstance(reference, RemoteId) else reference)
        names[text.lower()] = name
    for each in definitions:
        if names.keys().isdisjoint(map(str.lower, each.inputs)):
            yield each
        else:
            events = tuple(_named_here(event, names) for event in each.snapshot.metadata)
            snapshot = replace(each.snapshot, metadata=events)
            yield Definition(
                content=snapshot, file=each.file, document=each.document, instance=each.instance
            )


def _named_here(event: MetadataEvent, names: Mapping[str, str]) -> MetadataEvent:
    if not isinstance(event, SetTransform):
        return event
    inputs = [
        replace(each, dataset_ref=DatasetAlias.parse(name)) if name is not None else each
        for each in event.inputs
        for name in [names.get(str(each.dataset_ref).lower())]
    ]
    return replace(event, inputs=tuple(inputs))


def wrong_sharing(content: Content, text: str, file: str) -> Iterator[ProjectError]:
    """All that is wrong with `repositories`, `external` and `publish` of odfbuild.yaml (`text`)."""

    def at(*path: Any) -> Location:
        return locate(text, file, 0, ("content", *path))

    folded: dict[str, str] = {}
    for name in content.repositories:
        place = at("repositories", name)
        if not is_name(name):
            yield ProjectError(
                f"'{name}' cannot be the name of a repository: names are letters and digits, with "
                "single '-' and '.' between them",
                code="E1060",
                location=place,
                help="give it another name, such as `acme`",
            )
        elif name.lower() in folded:
            yield ProjectError(
                f"the repositories '{folded[name.lower()]}' and '{name}' differ only in case, "
                "which does not count",
                code="E1061",
                location=place,
                help="rename or remove one of them",
            )
        folded.setdefault(name.lower(), name)
    seen: dict[RemoteRef, str] = {}
    for name, value in content.external.items():
        yield from _wrong_external(name, value, content, seen, at("external", name))
    for number, each in enumerate(content.publish):
        if each.to.lower() not in folded:
            yield _unknown(each.to, content, at("publish", number, "to"))


def _wrong_external(
    name: str, text: str, content: Content, seen: dict[RemoteRef, str], place: Location
) -> Iterator[ProjectError]:
    if not is_alias(name):
        yield ProjectError(
            f"'{name}' cannot be the name of a dataset: names are letters and digits, with "
            "single '-' and '.' between them",
            code="E1062",
            location=place,
            help="give it another name",
        )
    try:
        reference = remote_reference(text, content)
    except ValueError:
        reference = None
    if reference is None:
        prefix, slash, rest = text.partition("/")
        if slash and is_name(prefix) and (is_name(rest) or rest.startswith("did:")):
            yield _unknown(prefix, content, place)
        else:
            yield ProjectError(
                f"'{text}' does not say where the dataset '{name}' lies",
                code="E1062",
                location=place,
                help="write repository/name, repository/account/name, repository/did:odf:…, or "
                "an address, such as s3://bucket/name",
            )
        return
    if not isinstance(reference, Url):
        repository = reference.repo or ""
        if repository.lower() not in {each.lower() for each in content.repositories}:
            yield _unknown(repository, content, place)
    first = seen.setdefault(reference, name)
    if first != name:
        yield ProjectError(
            f"'{first}' and '{name}' are the same dataset, {text}",
            code="E1063",
            location=place,
            help="remove one of them",
        )


def _unknown(name: str, content: Content, place: Location) -> ProjectError:
    return ProjectError(
        f"there is no repository '{name}' in odfbuild.yaml",
        code="E1064",
        location=place,
        help=did_you_mean(
            name, content.repositories, f"add it: `repositories: {{{name}: {{url: ADDRESS}}}}`"
        ),
    )


def _names(content: Content) -> frozenset[str]:
    return frozenset(content.repositories)
