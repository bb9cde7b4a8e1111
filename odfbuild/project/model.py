"""A project whose files were read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from odfbuild.engine.settings import FileAccess
from odfbuild.errors import Errors, Location, OdfbuildError, as_one, in_order
from odfbuild.odf.model import DatasetSnapshot, SetTransform, TransformSql
from odfbuild.odf.queries import queries_of
from odfbuild.project.boundary import Boundary
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.settings.content import Content
from odfbuild.project.settings.notifying import Notify
from odfbuild.project.settings.personal import subjects_of
from odfbuild.project.settings.personal_keys import PersonalKeys
from odfbuild.project.settings.serving import Serving
from odfbuild.store.disposable import cache_folder, unpacked
from odfbuild.store.files import top_of
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.store.dataset import Elsewhere
    from odfbuild.store.personal import Personal
    from odfbuild.store.workspace import Workspace


class Config(Content, kw_only=True):
    """`odfbuild.yaml`, for one environment and with variables as they were `given`.

    Folders are absolute, `storage` is an address, `moved` gives new names of datasets by old
    ones, `engines` those that stand in for others, both in lower case,
    `lint` levels by names of rules. What the machine decides is part of `ingest` and `engine`.
    """

    root: Path
    datasets: Path
    state: Path
    folders: tuple[Path, ...] = ()
    given: Overrides = NO_OVERRIDES
    serving: Serving = Serving()
    notify: tuple[Notify, ...] = ()
    personal_keys: PersonalKeys = PersonalKeys()

    @property
    def env(self) -> str | None:
        """The environment; `None` where none was asked for."""
        return self.given.env

    @property
    def branch(self) -> str | None:
        """The branch that datasets are looked at and appended to in; `None`: the head."""
        return self.given.branch

    @property
    def on_head(self) -> Config:
        """The same outside of branches."""
        return self if self.branch is None else self.in_branch(None)

    def in_branch(self, branch: str | None) -> Config:
        """The same in another branch; `None`: on the head."""
        return replace(self, given=replace(self.given, branch=branch))

    @property
    def qualified_name(self) -> str:
        """What notes in Git call the project: each environment has chains of its own."""
        return self.name if self.env is None else f"{self.name}@{self.env}"

    @property
    def cache(self) -> Path:
        """Disposable files of the environment: deleting them changes nothing but time."""
        return cache_folder(self.root, self.env)

    @property
    def boundary(self) -> Boundary:
        """Where files lie that planning may open."""
        return Boundary(self.root, self.folders)

    @property
    def inbox(self) -> Path:
        """What sources handed over and no chain holds yet: never in Git, not disposable."""
        return self.root / ".odfbuild-inbox"

    @property
    def keys(self) -> Path:
        """Private keys of datasets: never in Git, never in a chain, not disposable."""
        return self.root / ".odfbuild-keys"

    @property
    def reach(self) -> FileAccess:
        """What an engine may touch: chains and data, never hidden files such as keys and `.env`."""
        visible = sorted(each for each in self.root.iterdir() if not each.name.startswith("."))
        return FileAccess(read=(self.state, self.cache, *visible), write=(self.cache / "scratch",))

    def workspace(self, elsewhere: Elsewhere | None = None) -> Workspace:
        """The datasets of the environment; data that is only `elsewhere` comes from there."""
        from odfbuild.store.storage import Storage
        from odfbuild.store.workspace import Workspace

        storage = Storage(self.storage, self.root) if self.storage is not None else None
        git_branch = None if self.branch is None else _checked_out_branch(self.root)
        return Workspace(
            self.state,
            self.keys,
            self.cache,
            storage,
            elsewhere,
            self.branch,
            git_branch=git_branch,
            stored_chains=self.chains == "storage",
            offline=self.given.offline,
            personal=self._personal_data,
        )

    @property
    def _personal_data(self) -> Personal | None:
        """The personal columns of datasets, and the rights of this machine."""
        if not self.personal:
            return None
        from odfbuild.project.key_place import open_keys
        from odfbuild.store.personal import Personal

        machine = self.personal_keys
        return Personal(
            partial(subjects_of, self.personal),
            partial(open_keys, machine, self.root, self.state),
            show=machine.show,
            publish=machine.publish,
            hiding=machine.hide,
        )


_OF_JOB = ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
"""Where a CI job says which branch its pull or merge request comes from."""
_BRANCH = "ref: refs/heads/"


def _checked_out_branch(root: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The branch of Git of the pull request that a CI job runs for, or of the clone, if any.

    Starts no program.
    """
    of_job = next((environ[name] for name in _OF_JOB if environ.get(name)), None)
    if of_job is not None:
        return of_job
    git = top_of(root) / ".git"
    try:
        own = git if git.is_dir() else git.parent / git.read_text().partition(" ")[2].strip()
        head = (own / "HEAD").read_text().strip()
    except (OSError, ValueError):
        return None
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else None


_WINDOW = re.compile(r"\b(?:window|tumble|hop)\b", re.I)


def _names_window(query: str) -> bool:
    """Whether a look at the words can find one: most queries are told apart in a tenth of it."""
    return "window" in query or "tumble" in query or "hop" in query


def has_windows(transform: TransformSql) -> bool:
    """Whether queries may have windows of event time, by their words."""
    queries = (step.query for step in transform.queries or ())
    return any(_WINDOW.search(each) for each in queries if _names_window(each.lower()))


class Definition(Value, kw_only=True, dict=True, eq=False):
    """A dataset as the project defines it, in normal form: `queries`, inputs with aliases.

    `content` is what it says, or the bytes of that, which are read when somebody looks. `file` is
    relative to the project's root, `document` the index of the YAML document in it, `instance` the
    values that made it when it comes from a template (`origin=EWR`). `key` stands for all of it:
    equal keys, equal definitions; `None`: not known. `portal_of` is the dataset whose records it
    gets, by odfbuild.yaml.
    """

    content: DatasetSnapshot | Raw
    file: str
    document: int = 0
    instance: str | None = None
    key: bytes | None = None
    portal_of: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash((self.file, self.document, self.instance))

    @property
    def _compared(self) -> tuple[Any, ...]:
        return self.snapshot, self.file, self.document, self.instance, self.portal_of

    @cached_property
    def snapshot(self) -> DatasetSnapshot:
        """What it says."""
        if isinstance(self.content, DatasetSnapshot):
            return self.content
        snapshot: DatasetSnapshot = unpacked(DatasetSnapshot, self.content)
        return snapshot

    @cached_property
    def name(self) -> str:
        """The alias."""
        return str(self.snapshot.name)

    @cached_property
    def folded(self) -> str:
        """The alias in lower case: case does not count where datasets are told apart."""
        return self.name.lower()

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """What its transformation reads, or a portal follows: aliases and DIDs, as text."""
        if self.portal_of is not None:
            return (self.portal_of,)
        for event in reversed(self.snapshot.metadata):
            if isinstance(event, SetTransform):
                return tuple(str(each.dataset_ref) for each in event.inputs)
        return ()

    @cached_property
    def engines(self) -> tuple[str, ...]:
        """Engines of its queries, in lower case, each once."""
        found = (transform.engine.lower() for _, transform in queries_of(self.snapshot))
        return tuple(dict.fromkeys(found))

    @cached_property
    def windowed(self) -> bool:
        """Whether its queries may have windows of event time, by their words."""
        return any(has_windows(each) for _, each in queries_of(self.snapshot))

    @property
    def location(self) -> Location:
        """Its file."""
        return Location(self.file, instance=self.instance)


class WrongDefinition(Value, kw_only=True):
    """A definition that cannot be used, or a file that cannot be read, and all that is wrong.

    `name` is that of its dataset as far as it can be told; `None`: no more than the file is known.
    `rendered` is what a template was rendered to, with `instance` for its values.
    """

    file: str
    name: str | None
    errors: tuple[OdfbuildError, ...]
    rendered: str | None = None
    instance: str | None = None

    @property
    def label(self) -> str:
        """What it is called where datasets are listed."""
        return self.name or self.file

    @property
    def refusal(self) -> OdfbuildError:
        """One error that tells all."""
        return as_one(self.errors, self.name)


class Project(Value, kw_only=True):
    """Configuration and all definitions, in order of file and document; `wrong` are the others."""

    config: Config
    definitions: tuple[Definition, ...]
    wrong: tuple[WrongDefinition, ...] = ()

    def check(self) -> None:
        """Raise `Errors` with everything that is wrong with definitions, in order of place."""
        errors = [part for each in self.wrong for error in each.errors for part in error.apart()]
        if errors:
            raise Errors(in_order(errors))
