"""`odfbuild.yaml`: find it, read it, check it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odfbuild.engine.settings import SCHEMA as ENGINE
from odfbuild.engine.settings import engine_settings, refused
from odfbuild.errors import Errors, Location, ProjectError
from odfbuild.ingest.settings import SCHEMA as INGEST
from odfbuild.ingest.settings import settings_from
from odfbuild.odf.decode_errors import describe
from odfbuild.project.environments import (
    check_environment,
    environments,
    nested_states,
    state_of,
)
from odfbuild.project.lint.rules import SCHEMA as LINT
from odfbuild.project.machine import SCHEMA as MACHINE
from odfbuild.project.machine import (
    VARIABLE,
    machine_file,
    merged,
    not_for_projects,
    refuse_within,
    with_variables,
)
from odfbuild.project.model import Config
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.reach import Boundary
from odfbuild.project.settings.checks import SCHEMA as CHECKS
from odfbuild.project.settings.checks import checks_from
from odfbuild.project.settings.freshness import SCHEMA as FRESHNESS
from odfbuild.project.settings.freshness import freshness_from
from odfbuild.project.settings.owners import SCHEMA as OWNERS
from odfbuild.project.settings.owners import owners_from
from odfbuild.project.settings.policy import SCHEMA as POLICIES
from odfbuild.project.settings.policy import policies_from
from odfbuild.project.settings.watermarks import SCHEMA as WATERMARKS
from odfbuild.project.settings.watermarks import watermarks_from
from odfbuild.project.variables import FOLDER as VARS
from odfbuild.project.variables import variables
from odfbuild.project.yaml.plain import read_documents
from odfbuild.project.yaml.source import locate, locate_in_scalar
from odfbuild.store.files import top_of
from odfbuild.wording import did_you_mean

FILE = "odfbuild.yaml"

STORAGE: dict[str, Any] = {
    "type": "string",
    "pattern": r"^(s3|gs|az|abfs|file)://.|^[^:]+$",
    "examples": ["s3://bucket/prefix", "../data"],
    "description": "Storage of the data for all clones: s3://bucket/prefix, gs:, az:, or a folder",
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "odfbuild project",
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "version", "content"],
    "properties": {
        "kind": {"const": "Project"},
        "version": {"const": 1},
        "content": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "datasets": {
                    "type": "string",
                    "default": "datasets",
                    "description": "Folder of the definitions",
                },
                "state": {
                    "type": "string",
                    "default": "chains",
                    "description": "Folder of the metadata chains and their data",
                },
                "storage": STORAGE,
                "vars": {
                    "type": "object",
                    "description": "Values that templates can use",
                },
                "ingest": INGEST,
                "engine": ENGINE,
                "selectors": {
                    "type": "object",
                    "additionalProperties": {"type": "string", "minLength": 1},
                    "description": "Named selections, for `--selector NAME`",
                },
                "environments": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "state": {
                                "type": "string",
                                "description": "Folder of its chains (default: chains-NAME)",
                            },
                            "storage": STORAGE,
                        },
                    },
                    "description": "Environments and where each keeps its chains",
                },
                "moved": {
                    "type": "object",
                    "additionalProperties": {"type": "string", "minLength": 1},
                    "description": "New names of renamed datasets, by their old ones",
                },
                "policies": POLICIES,
                "engines": {
                    "type": "object",
                    "additionalProperties": {"type": "string", "enum": ["spark"]},
                    "description": "Which engine runs queries of another engine",
                },
                "checks": CHECKS,
                "freshness": FRESHNESS,
                "watermarks": WATERMARKS,
                "owners": OWNERS,
                "lint": LINT,
            },
        },
    },
}
"""What `odfbuild.yaml` may hold."""


def find_root(start: Path | None = None) -> Path:
    """The folder of the nearest `odfbuild.yaml` at or above `start` (the current folder)."""
    begin = (start or Path.cwd()).resolve()
    for folder in (begin, *begin.parents):
        if (folder / FILE).is_file():
            return folder
    raise ProjectError(
        f"there is no {FILE} in {begin} or above it",
        code="E0100",
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
    documents = read_documents(text, FILE)
    data = documents[0] if documents else None
    errors = _problems(data, text)
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
        errors.extend(nested_states(data, text, FILE))
    if errors:
        raise Errors(errors)
    content = data["content"]  # type: ignore[index]
    declared = content.get("environments") or {}
    storage = content.get("storage")
    if given.env is not None:
        check_environment(root, declared, given.env)
        storage = (declared.get(given.env) or {}).get("storage", storage)
    datasets, state = (
        root / content.get("datasets", "datasets"),
        root / state_of(content, given.env),
    )
    for each in (datasets, state, *([root / VARS / f"{given.env}.yaml"] if given.env else ())):
        boundary.check_open(each)
    return Config(
        name=content["name"],
        given=given,
        root=root,
        datasets=datasets,
        state=state,
        storage=storage,
        vars=variables(root, content.get("vars") or {}, given),
        ingest=settings_from({**(content.get("ingest") or {}), **machine["ingest"]}),
        engine=engine_settings(merged(content.get("engine") or {}, machine["engine"])),
        folders=folders,
        selectors=content.get("selectors") or {},
        moved=content.get("moved") or {},
        policies=policies_from(content.get("policies") or ()),
        engines={name.lower(): each for name, each in (content.get("engines") or {}).items()},
        checks=checks_from(content.get("checks") or ()),
        freshness=freshness_from(content.get("freshness") or ()),
        watermarks=watermarks_from(content.get("watermarks") or ()),
        owners=owners_from(content.get("owners") or ()),
        lint=content.get("lint") or {},
    )


def known_environments(start: Path | None = None) -> set[str]:
    """Names of the environments of the project around `start`."""
    root = find_root(start)
    content = read_documents(_read(root / FILE), FILE)[0]["content"]
    return environments(root, content.get("environments") or {})


def _read(file: Path) -> str:
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


_TYPES: dict[str, Any] = {
    "string": str,
    "object": dict,
    "array": list,
    "integer": int,
    "number": (int, float),
}


def _plainly_fits(data: Any, schema: dict[str, Any]) -> bool:
    """Whether data fits beyond doubt, by the few keywords that `SCHEMA` uses."""
    if not schema:
        return True
    if "const" in schema:
        return type(data) is type(schema["const"]) and bool(data == schema["const"])
    if "enum" in schema and data not in schema["enum"]:
        return False
    if not isinstance(data, _TYPES[schema["type"]]):
        return False
    if "pattern" in schema and re.search(schema["pattern"], data) is None:
        return False
    if isinstance(data, int | float):
        return not isinstance(data, bool) and bool(
            schema.get("minimum", data) <= data > schema.get("exclusiveMinimum", -1)
        )
    if isinstance(data, list):
        return all(_plainly_fits(value, schema["items"]) for value in data)
    properties = schema.get("properties")
    if properties is None:
        each = schema.get("additionalProperties")
        if each is not None:
            return all(_plainly_fits(value, each) for value in data.values())
        return bool(len(data) >= schema.get("minLength", 0))
    return set(schema.get("required", ())) <= set(data) <= set(properties) and all(
        _plainly_fits(value, properties[key]) for key, value in data.items()
    )


def _refused_engine(data: Any, text: str, file: str) -> Iterator[ProjectError]:
    for path, message, way_out in refused(data["content"].get("engine") or {}):
        place = locate(text, file, 0, ("content", "engine", *path))
        yield ProjectError(message, code="E0118", location=place, help=way_out)


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


def _machine(root: Path) -> dict[str, Any]:
    """What the machine's owner says; raises `Errors` with all that is wrong with it."""
    file = machine_file()
    if file is None or not (file.is_file() or VARIABLE in os.environ):
        return with_variables({})
    refuse_within(file, top_of(root))
    name, text = str(file), _read(file)
    documents = read_documents(text, name)
    data = documents[0] if documents else None
    errors = _problems(data, text, MACHINE, name) or list(_refused_engine(data, text, name))
    if errors:
        raise Errors(errors)
    return with_variables(data["content"])  # type: ignore[index]


def _problems(
    data: Any, text: str, schema: dict[str, Any] = SCHEMA, file: str = FILE
) -> list[ProjectError]:
    if _plainly_fits(data, schema):
        return []
    # Only a library that takes a tenth of a second to import can say what is wrong.
    from jsonschema import Draft202012Validator

    errors = []
    for found in Draft202012Validator(schema).iter_errors(data):
        path = tuple(found.absolute_path)
        if found.validator == "additionalProperties":
            known = list(found.schema["properties"])
            for key in sorted(set(found.instance) - set(known)):
                errors.append(
                    ProjectError(
                        f"unknown key '{key}'",
                        code="E0104",
                        location=locate(text, file, 0, (*path, key)),
                        help=did_you_mean(key, known, f"known keys are: {', '.join(known)}"),
                    )
                )
            continue
        errors.append(
            ProjectError(
                _said(found.validator, _wanted(found), found.instance, found.message),
                code="E0105",
                location=locate(text, file, 0, path),
                help=f"see the form of {Path(file).name} in docs/configuration.md",
            )
        )
    return errors


_NAMES = {
    "string": "a string",
    "object": "an object",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
}


def _wanted(found: Any) -> Any:
    """What a rule asks for: of a pattern, values that have its form."""
    return found.schema["examples"] if found.validator == "pattern" else found.validator_value


def _said(rule: Any, value: Any, found: Any, message: str) -> str:
    """What is wrong in the words of all other errors; `message` is the library's."""
    if rule == "type":
        return f"expected {_NAMES[value]}; found {describe(found)}"
    if rule == "pattern":
        return f"expected something like {', '.join(value)}; found {describe(found)}"
    if rule in ("const", "enum"):
        allowed = (value,) if rule == "const" else value
        one_of = "one of " * (len(allowed) > 1)
        return f"expected {one_of}{', '.join(map(str, allowed))}; found {describe(found)}"
    return message.replace("is a required property", "is missing")


def place_in_config(root: Path, *path: str | int) -> Location:
    """The place of a value of odfbuild.yaml; reads the file again."""
    return locate(_read(root / FILE), FILE, 0, path)


def place_in_text(root: Path, line: int, column: int, *path: str | int) -> Location | None:
    """The place of line and column (from 1) of a text in odfbuild.yaml; `None`: it is no text."""
    return locate_in_scalar(_read(root / FILE), FILE, 0, path, line, column)
