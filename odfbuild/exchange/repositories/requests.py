"""What users ask of `pull` and `push`, as names, references and repositories; what that means.

Sources: Open Data Fabric, "Dataset References"; reference behaviour, planning of pulls and pushes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from odfbuild.errors import OdfbuildError, PlanError, RepositoryError, together
from odfbuild.exchange.passport.forms import passports_beside
from odfbuild.exchange.repositories.addresses import (
    DatasetAddress,
    Repository,
    find_dataset,
    find_repository,
    is_address,
    within,
)
from odfbuild.exchange.repositories.dataset_config import read_config
from odfbuild.exchange.repositories.external import (
    ExternalDataset,
    external_dataset,
    external_datasets,
)
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.parallel import Wanted
from odfbuild.exchange.repositories.pull import Pull
from odfbuild.exchange.repositories.push import Push, no_passports
from odfbuild.odf.identity import DatasetId, is_alias
from odfbuild.project.model import Config, Definition
from odfbuild.project.settings.by_name import last_matching
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

USAGE = 64


class PullRequest(Value, kw_only=True):
    """Pull what `references` mean; `None`: all external datasets.

    A reference is a name here, an address, or one of the specification. Names are looked up in
    `repository` if that is given. `name` is what a single dataset is to be called here, `to` the
    last block to take; `allow` names the datasets whose history may be replaced, `unsigned` those
    whose heads need not be signed though they were before.
    """

    references: Sequence[str] | None = None
    repository: str | None = None
    name: str | None = None
    to: str | None = None
    data: bool = True
    allow: Sequence[str] = ()
    unsigned: Sequence[str] = ()


class PushRequest(Value, kw_only=True):
    """Push the datasets `names` to `repository`, or where `publish` in odfbuild.yaml says.

    Without `names` all that were not pulled, or all of a branch.
    `name` is what a single dataset is to be called there; `allow` names the datasets whose history
    there may be replaced.
    """

    names: Sequence[str] | None = None
    repository: str | None = None
    name: str | None = None
    allow: Sequence[str] = ()


def is_reference(text: str, config: Config) -> bool:
    """Whether `text` refers to a dataset elsewhere or by identity, and is no name of one here."""
    try:
        return text.startswith("did:") or external_dataset(text, config) is not None
    except ValueError:
        return False


def own_datasets(workspace: Workspace) -> list[str]:
    """Names of all datasets that were not pulled, sorted."""
    return [
        alias
        for alias in workspace.aliases()
        if not read_config(f"{workspace.state}/{alias}").pull_aliases
    ]


def pulls_of(
    config: Config,
    definitions: Iterable[Definition],
    workspace: Workspace,
    remotes: Remotes,
    request: PullRequest,
) -> list[Pull]:
    """Which datasets to pull from where; all that is wrong with the request is raised at once."""
    origins = external_datasets(config, tuple(definitions), workspace)
    known = sorted(each.name for each in origins.values())
    wanted = known if request.references is None else list(request.references)
    _check_single(request.name, request.to, wanted)
    look_up = _LookUp(config, workspace, remotes, origins, request)
    return named_apart(_each(wanted, look_up.pull), (*request.allow, *request.unsigned))


def pushes_of(
    config: Config, workspace: Workspace, remotes: Remotes, request: PushRequest
) -> list[Push]:
    """Which datasets to push where; all that is wrong with the request is raised at once."""
    names = own_datasets(workspace) if request.names is None else request.names
    _check_single(request.name, None, names)
    allowed = _folded(request.allow)

    def one(name: str) -> Push:
        address = _target(config, request, name)
        return Push(
            name=name,
            address=address.address,
            open=partial(remotes.writable, address),
            replace=name.lower() in allowed,
            passports=partial(passports_beside, config, name)
            if address.repository.passports
            else no_passports,
        )

    return named_apart(_each(names, one), request.allow)


class _LookUp(Value):
    """From what was asked for to what is pulled; `origins` are external datasets by folded name."""

    config: Config
    workspace: Workspace
    remotes: Remotes
    origins: Mapping[str, ExternalDataset]
    request: PullRequest

    def pull(self, text: str) -> Pull:
        """What `text` means."""
        try:
            if text.startswith("did:"):
                return self._by_identity(DatasetId.parse(text))
            found = external_dataset(text, self.config)
        except ValueError:
            raise RepositoryError(
                f"'{text}' is not a reference to a dataset", code="E1004", help=_FORMS
            ) from None
        if found is not None:
            return self._external(found)
        if self.request.repository is not None:
            return self._from(within(self._repository(), text), text)
        return self._from_origin(text)

    def _by_identity(self, id: DatasetId) -> Pull:
        local = self.workspace.resolve(id)
        if self.request.repository is not None:
            return self._from(DatasetAddress(self._repository(), id=id), local)
        if local is None:
            raise RepositoryError(
                f"{id} is not in this project, and no repository is named",
                code="E1032",
                help="name where it is published: `odfbuild pull DID --from REPOSITORY`",
            )
        return self._from_origin(local, expected=id)

    def _from_origin(self, name: str, expected: DatasetId | None = None) -> Pull:
        """From where the dataset was pulled before, or a definition or `external` says."""
        origin = self.origins.get(name.lower())
        if origin is None:
            known = sorted(self.config.repositories)
            raise RepositoryError(
                f"it is not clear where '{name}' is to be pulled from",
                code="E1032",
                dataset=name,
                notes=(f"repositories in odfbuild.yaml: {', '.join(known) if known else 'none'}",),
                help=did_you_mean(
                    name,
                    [each.name for each in self.origins.values()],
                    f"name the repository: `odfbuild pull {name} --from REPOSITORY`",
                ),
            )
        return self._external(origin, expected)

    def _external(self, found: ExternalDataset, expected: DatasetId | None = None) -> Pull:
        address = find_dataset(str(found), self.config.repositories)
        if self.request.repository is not None and address.path:
            address = within(self._repository(), address.path)
        known = found.name if is_alias(found.name) else None
        declared = found.name.lower() in map(str.lower, self.config.external)
        local = known if declared else self._pulled_as(address) or known
        return self._from(address, local, expected)

    def _from(
        self, address: DatasetAddress, local: str | None, expected: DatasetId | None = None
    ) -> Pull:
        expected = expected or address.id
        name = self.request.name or local
        if name is None:
            address = self.remotes.address(address)  # its repository knows the name of an identity
            name = address.name
        if name is None or not is_alias(name):
            raise RepositoryError(
                f"'{name}' cannot be the name of a dataset"
                if name is not None
                else f"{address.address} does not tell the name of the dataset",
                code="E1033",
                help="name it: `--as NAME`, of letters and digits with single '-' and '.' between",
            )
        return Pull(
            name=self.workspace.find(name) or name,
            address=address.address,
            reference=reference_to(address, self.config.root),
            open=partial(self.remotes.dataset, address),
            expected=expected,
            to=self.request.to,
            data=self.request.data,
            replace=name.lower() in _folded(self.request.allow),
            signed=address.repository.signatures == "required",
            unsigned=name.lower() in _folded(self.request.unsigned),
            external=name.lower() in self.origins,
        )

    def _repository(self) -> Repository:
        return find_repository(self.request.repository or "", self.config.repositories)

    def _pulled_as(self, address: DatasetAddress) -> str | None:
        """The dataset that was pulled from there before."""
        reference = reference_to(address, self.config.root)
        return next((x.name for x in self.origins.values() if str(x) == reference), None)


_FORMS = (
    "write a name, did:odf:…, repository/name, repository/account/name, repository/did:odf:… or an "
    "address"
)


def reference_to(address: DatasetAddress, root: Path) -> str:
    """How `info/config` names a dataset elsewhere: a reference of the specification.

    By the name of its repository, which every clone of the project knows, or as a URL.
    """
    repository = address.repository
    if repository.name is not None and (address.id is not None or is_alias(address.path)):
        return f"{repository.name}/{address.id or address.path}"
    if not repository.scheme:
        return (root / Path(address.address).expanduser()).resolve().as_uri()
    return address.address


def _target(config: Config, request: PushRequest, name: str) -> DatasetAddress:
    """Where a dataset is pushed."""
    text = request.repository
    if text is None:
        entry = last_matching(config.publish, name)
        if entry is None:
            raise PlanError(
                f"it is not clear where '{name}' is to be pushed",
                code="E1032",
                dataset=name,
                help=f"name a repository: `odfbuild push {name} --to REPOSITORY`, or list the "
                "dataset under `publish` in odfbuild.yaml; records are added to a push source by "
                "`odfbuild ingest DATASET FILE`",
                exit_code=USAGE,
            )
        text = entry.to
    if not is_address(text) and "/" in text:
        return find_dataset(text, config.repositories)
    return within(find_repository(text, config.repositories), request.name or name)


_T = TypeVar("_T")
_P = TypeVar("_P", bound=Wanted)


def _each(texts: Iterable[str], look_up: Callable[[str], _T]) -> list[_T]:
    """What each text means; all errors together."""
    found: list[_T] = []
    errors: list[OdfbuildError] = []
    for text in texts:
        try:
            found.append(look_up(text))
        except OdfbuildError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return found


def named_apart(found: list[_P], allow: Sequence[str]) -> list[_P]:
    """The same, each dataset once; `PlanError` E1035 when `allow` names any other."""
    by_name = {each.name.lower(): each for each in found}
    for name in allow:
        if name.lower() not in by_name:
            raise PlanError(
                f"--allow names '{name}', which this command is not about",
                code="E1035",
                help="name one of its datasets, such as --allow reset:NAME",
                exit_code=USAGE,
            )
    return list(by_name.values())


def _check_single(name: str | None, to: str | None, wanted: Sequence[str]) -> None:
    option = "--as" if name is not None else "--to" if to is not None else None
    if option is not None and len(wanted) != 1:
        raise PlanError(
            f"{option} is for one dataset, and there are {len(wanted)}",
            code="E1034",
            help="name one dataset",
            exit_code=USAGE,
        )


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
