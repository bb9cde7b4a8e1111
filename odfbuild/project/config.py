"""`odfbuild.yaml`: find it, read it, check it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from odfbuild.declared_settings import Misfit, read
from odfbuild.engine.settings import EngineSettings, refused
from odfbuild.errors import (
    ChainError,
    Code,
    Errors,
    InSettings,
    Location,
    OdfbuildError,
    PersonalDataError,
    ProjectError,
)
from odfbuild.ingest.settings import IngestSettings
from odfbuild.project.boundary import Boundary
from odfbuild.project.machine import (
    VARIABLE,
    Machine,
    MachineFile,
    machine_file,
    merged,
    not_for_projects,
    refuse_within,
    with_variables,
)
from odfbuild.project.misfits import misfits
from odfbuild.project.model import Config
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.settings import notifying
from odfbuild.project.settings.content import Content, Environment, ProjectFile
from odfbuild.project.settings.personal import wrong_entries
from odfbuild.project.settings.serving import Serving
from odfbuild.project.unsaved import unsaved_text
from odfbuild.project.variables import FOLDER, variables
from odfbuild.project.variables import FOLDER as VARS
from odfbuild.project.yaml.source import locate, locate_in_scalar, read_documents
from odfbuild.sql.translate import named
from odfbuild.store.disposable import (
    cache_folder,
    code_stamp,
    read_disposable,
    write_disposable,
)
from odfbuild.store.files import top_of
from odfbuild.wording import did_you_mean

FILE = "odfbuild.yaml"


def find_root(start: Path | None = None) -> Path:
    """The folder of the nearest `odfbuild.yaml` at or above `start` (the current folder)."""
    begin = (start or Path.cwd()).resolve()
    for folder in (begin, *begin.parents):
        if (folder / FILE).is_file():
            return folder
    raise ProjectError(
        f"there is no {FILE} in {begin} or above it",
        code=Code.NO_PROJECT,
        help="run `odfbuild init` to start a project here, or give its folder with --directory",
    )


def load_config(start: Path | None = None, given: Overrides = NO_OVERRIDES) -> Config:
    """Read the configuration of the project around `start`; raises `Errors` with all problems.

    `given` names the environment and gives variables other values.
    """
    root = find_root(start)
    machine = _machine(root)
    folders = tuple(Path(each).expanduser().resolve() for each in machine["folders"])
    boundary = Boundary(root, folders)
    boundary.check_open(root / FILE)
    text = _read(root / FILE)
    documents = _documents(root, text)
    data: Any = documents[0] if documents else None
    errors: list[OdfbuildError]
    content, errors = _understood(ProjectFile, data, text, FILE)
    second = next((at for at, each in enumerate(documents) if at and each is not None), None)
    if second is not None:
        errors.append(
            ProjectError(
                f"{FILE} has more than one document",
                code="E0105",
                location=locate(text, FILE, second, ()),
                help="write all of it in one, without a line of `---` in between",
            )
        )
    if not errors:
        errors.extend(_refused_engine(data, text, FILE))
        places = [str(each.location) for each in errors]
        owned = _owned_by_machine(data, text)
        errors.extend(each for each in owned if str(each.location) not in places)
        errors.extend(nested_states(content, text, FILE))
        if content.repositories or content.external or content.publish:
            from odfbuild.project.references import wrong_sharing

            errors.extend(wrong_sharing(content, text, FILE))
        errors.extend(_wrong_personal(content, text))
        if content.tables:
            from odfbuild.project.tables import wrong_tables

            errors.extend(wrong_tables(content, text, FILE))
    if errors:
        raise Errors(errors)
    storage, chains = content.storage, content.chains
    if given.env is not None:
        check_environment(root, content.environments, given.env)
        own = content.environments.get(given.env, Environment())
        storage, chains = own.storage or storage, own.chains or chains
    if chains == "storage" and storage is None:
        raise ChainError(
            "`chains: storage` needs a storage, and there is none",
            code="E0672",
            location=locate(text, FILE, 0, ("content", "chains")),
            help="name one beside it, such as `storage: s3://bucket/prefix`, or remove the line",
        )
    datasets, state = root / content.datasets_folder, root / state_of(content, given.env)
    boundary.check_open(state, hidden=True)
    for each in (datasets, *([root / VARS / f"{given.env}.yaml"] if given.env else ())):
        boundary.check_open(each)
    plain = data["content"]
    changed = {
        "storage": storage,
        "chains": chains,
        "vars": variables(root, content.vars, given),
        "ingest": read(IngestSettings, {**plain.get("ingest", {}), **machine["ingest"]}),
        "engine": read(EngineSettings, merged(plain.get("engine", {}), machine["engine"])),
        "engines": {
            name.lower(): each for name, each in {**content.engines, **machine["engines"]}.items()
        },
    }
    return Config(
        **{each.name: getattr(content, each.name) for each in fields(Content)} | changed,
        given=given,
        root=root,
        datasets=datasets,
        state=state,
        folders=folders,
        serving=read(Serving, machine["serve"]),
        notify=machine["notify"],
        personal_keys=machine["personal"],
    )


def known_environments(start: Path | None = None) -> set[str]:
    """Names of the environments of the project around `start`."""
    root = find_root(start)
    content = _documents(root, _read(root / FILE))[0]["content"]
    return environments(root, content.get("environments") or {})


def _documents(root: Path, text: str) -> list[Any]:
    """The values of odfbuild.yaml, kept by its text: to import PyYAML takes a small plan long."""
    file = cache_folder(root) / "settings.bin"
    stamp = b"odfbuild settings 1\n" + code_stamp() + sha256(text.encode()).digest()
    known: list[Any] | None = read_disposable(file, stamp)
    if known is None:
        known = read_documents(text, FILE)
        if unsaved_text(root / FILE) is None:
            with suppress(OverflowError):  # a number of more than 64 bits
                write_disposable(file, stamp, known)
    return known


def _read(file: Path) -> str:
    unsaved = unsaved_text(file)
    if unsaved is not None:
        return unsaved
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ProjectError(
            f"{file.name} is not UTF-8 text: {error.reason} at byte {error.start}",
            code="E0103",
            location=Location(file.name),
            help="save it as UTF-8",
        ) from None
    except OSError as error:
        raise ProjectError(
            f"{file} cannot be read: {error.strerror}",
            code="E0103",
            help="check that it is there and that you may read it",
        ) from None


def _refused_engine(data: Any, text: str, file: str) -> Iterator[ProjectError]:
    for path, message, way_out in refused(data["content"].get("engine") or {}):
        place = locate(text, file, 0, ("content", "engine", *path))
        yield ProjectError(message, code="E0118", location=place, help=way_out)
    for path, message, way_out in named.refused(data["content"].get("engines") or {}):
        place = locate(text, file, 0, ("content", "engines", *path))
        yield ProjectError(message, code="E1430", location=place, help=way_out)


def _owned_by_machine(data: Any, text: str) -> Iterator[ProjectError]:
    for path, why, variable in not_for_projects(data["content"]):
        name = path[-1] if path[1] == "conf" else ".".join(path)
        yield ProjectError(
            f"a project may not set `{name}`: {why}",
            code="E0170",
            location=locate(text, FILE, 0, ("content", *path)),
            help=f"remove it here; on machines that need it, write it in {machine_file()}"
            + (f", or set {variable}" if variable else ""),
        )


def _wrong_personal(content: Content, text: str) -> Iterator[PersonalDataError]:
    for error in wrong_entries(content.personal):
        assert isinstance(error.location, InSettings), "entries have places"
        yield error.at(locate(text, FILE, 0, ("content", *error.location.path)))


def _machine(root: Path) -> dict[str, Any]:
    """What the machine's owner says; raises `Errors` with all that is wrong with it."""
    file = machine_file()
    if file is None or not (file.is_file() or VARIABLE in os.environ):
        return with_variables({})
    refuse_within(file, top_of(root))
    name, text = str(file), _read(file)
    documents = read_documents(text, name)
    data: Any = documents[0] if documents else None
    content, errors = _understood(MachineFile, data, text, name)
    errors = errors or [*_refused_engine(data, text, name), *_wrong_notify(content, text, name)]
    if errors:
        raise Errors(errors)
    return with_variables(data["content"])


def _wrong_notify(machine: Machine, text: str, file: str) -> Iterator[ProjectError]:
    for number in notifying.wrong_entries(machine.notify):
        yield ProjectError(
            "an entry of `notify` has one of `webhook`, `command` and `email`; "
            "`sender` and `server` belong to `email`",
            code="E0173",
            location=locate(text, file, 0, ("content", "notify", number)),
            help="write one entry for each of them",
        )


def _understood(form: Any, data: Any, text: str, file: str) -> tuple[Any, list[Any]]:
    """The content of a file and nothing, or all that is wrong with it."""
    try:
        return read(form, data).content, []
    except Misfit:
        place = partial(locate, text, file, 0)
        help = f"see the form of {Path(file).name} in docs/configuration.md"
        return None, misfits(form, data, place, help)


def place_in_config(root: Path, *path: str | int) -> Location:
    """The place of a value of odfbuild.yaml; reads the file again."""
    return locate(_read(root / FILE), FILE, 0, path)


def place_in_text(root: Path, line: int, column: int, *path: str | int) -> Location | None:
    """The place of line and column (from 1) of a text in odfbuild.yaml; `None`: it is no text."""
    return locate_in_scalar(_read(root / FILE), FILE, 0, path, line, column)


def environments(root: Path, declared: Mapping[str, Any]) -> set[str]:
    """Environments that odfbuild.yaml declares or that have a file of variables."""
    return {*declared, *(path.stem for path in (root / FOLDER).glob("*.yaml"))}


def check_environment(root: Path, declared: Mapping[str, Any], env: str) -> None:
    """Raise `ProjectError` E0115 unless the project knows the environment."""
    known = environments(root, declared)
    if env in known:
        return
    raise ProjectError(
        f"this project has no environment '{env}'",
        code="E0115",
        notes=(f"there are: {', '.join(sorted(known)) or 'none'}",),
        help=did_you_mean(
            env,
            known,
            f"write {FOLDER}/{env}.yaml, or add '{env}' to `environments` in odfbuild.yaml",
        ),
    )


def state_of(content: Content, env: str | None) -> str:
    """The folder of the chains; `None`: no environment."""
    if env is None:
        return content.state_folder
    # Never the chains of another environment: a plan compares with its own only.
    own = content.environments.get(env, Environment()).state
    return f"{content.state_folder}-{env}" if own is None else own


def nested_states(content: Content, text: str, file: str) -> Iterator[ProjectError]:
    """`ProjectError` E0380 for each folder of chains that lies within another one.

    `text` is that of odfbuild.yaml.
    """
    folders = {env: PurePath(state_of(content, env)) for env in (None, *content.environments)}
    for env, folder in folders.items():
        for other, outer in folders.items():
            if outer not in folder.parents:
                continue
            path = ("state",) if env is None else ("environments", env, "state")
            apart = outer / (other or "default")
            yield ProjectError(
                f"the chains of {_named(env)} would be inside those of {_named(other)}: "
                f"{folder} is in {outer}",
                code="E0380",
                location=locate(text, file, 0, ("content", *path)),
                help=f"give each a folder of its own, such as `state: {apart}` for "
                f"{_named(other)}; move existing chains there",
            )


def _named(env: str | None) -> str:
    return "the project" if env is None else f"environment '{env}'"
