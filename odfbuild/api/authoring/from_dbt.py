"""Bring a dbt project to odfbuild: read, convert, validate what was made, write.

The result is validated in a scratch folder before anything is reported as moved. Files are written
by `write` only, and those that differ from what lies there are named by `overwritten` first.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.exchange.dbt import names
from odfbuild.exchange.dbt.files import SETTINGS, DbtFiles
from odfbuild.exchange.dbt.model import DbtProject, Note, Place
from odfbuild.exchange.dbt.result import Item, Migrated
from odfbuild.project.editor import provide_schemas, write_definition
from odfbuild.project.source import read_text
from odfbuild.project.yaml.source import read_documents
from odfbuild.survey.definitions import look_at_definitions
from odfbuild.survey.queries import wrong_queries
from odfbuild.survey.settings import wrong_settings
from odfbuild.survey.unit_tests import unit_tests_of
from odfbuild.wording import did_you_mean

DIALECTS = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "duckdb": "duckdb",
    "fabric": "fabric",
    "mysql": "mysql",
    "postgres": "postgres",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "spark": "spark",
    "sqlite": "sqlite",
    "sqlserver": "tsql",
    "trino": "trino",
}
"""What sqlglot calls the SQL of an adapter of dbt."""
_ONCE = (".gitignore",)
"""Files that are written only where there are none."""


def migrate(
    folder: Path,
    target: Path,
    *,
    variables: Mapping[str, Any],
    adapter: str | None = None,
    manifest: bool = True,
    schemas: bool = False,
) -> Migrated:
    """What the dbt project in `folder` becomes in a project at `target`; writes nothing there.

    Reads `target/manifest.json` unless `manifest` is false or there is none. `adapter` is the kind
    of its database (default: that of the manifest or of `profiles.yml`), `schemas` puts schemas in
    front of names. Raises `ProjectError` E0180 to E0183.
    """
    from odfbuild.exchange.dbt.convert import convert

    project = _read(folder, adapter, variables, manifest=manifest)
    kept = _kept_names(target / names.FILE)
    return _validated(convert(project, folder, target, kept, schemas=schemas))


def overwritten(migrated: Migrated, target: Path) -> list[Path]:
    """Files at `target` that `write` would replace by other content."""
    texts = [
        target / file
        for file, text in migrated.texts.items()
        if file not in _ONCE and not _has(target / file, text) and (target / file).exists()
    ]
    copies = [
        target / file
        for file, source in migrated.copies.items()
        if (target / file).exists() and not filecmp.cmp(target / file, source, shallow=False)
    ]
    return [*texts, *copies]


def write(migrated: Migrated, target: Path) -> list[str]:
    """Write all files that are not there with the same content; returns their names."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for file, text in migrated.texts.items():
        path = target / file
        if _has(path, text) or (file in _ONCE and path.exists()):
            continue
        write_definition(target, path, text)
        written.append(file)
    for file, source in migrated.copies.items():
        path = target / file
        if path.exists() and filecmp.cmp(path, source, shallow=False):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        written.append(file)
    provide_schemas(target)
    return written


def _has(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


# --- Reading ---


def _read(
    folder: Path, adapter: str | None, variables: Mapping[str, Any], *, manifest: bool
) -> DbtProject:
    from odfbuild.exchange.dbt.manifest import (
        adapter_of,
        load_manifest,
        read_manifest,
        unfit_manifest,
    )
    from odfbuild.exchange.dbt.sources import read_sources

    files = DbtFiles(folder)
    if not files.settings.get("name"):
        raise ProjectError(
            f"there is no dbt project in {folder}",
            code="E0180",
            location=Location(str(folder / SETTINGS)),
            notes=(f"a dbt project has a file `{SETTINGS}` with its `name`",),
            help="name the folder of the dbt project: `odfbuild migrate dbt FOLDER`",
        )
    data = load_manifest(folder) if manifest else None
    known = adapter or (adapter_of(data) if data is not None else _adapter_in_profile(files))
    if known not in DIALECTS:
        raise _unknown_adapter(folder, known)
    if data is not None:
        try:
            return read_manifest(folder, data, DIALECTS[known], variables)
        except (AttributeError, KeyError, TypeError) as error:
            why = f"it is not as dbt writes it ({type(error).__name__}: {error})"
            raise unfit_manifest(folder, why) from None
    return read_sources(folder, known, DIALECTS[known], variables)


def _adapter_in_profile(files: DbtFiles) -> str | None:
    """The type of the database in `profiles.yml` beside the project; `None` where none is said."""
    if not (files.folder / "profiles.yml").is_file():
        return None
    profiles = files.document("profiles.yml")
    profile = profiles.get(files.settings.get("profile")) if isinstance(profiles, dict) else None
    outputs = profile.get("outputs") if isinstance(profile, dict) else None
    if not isinstance(outputs, dict) or not isinstance(profile, dict):
        return None
    named = outputs.get(profile.get("target"))
    found = {each.get("type") for each in outputs.values() if isinstance(each, dict)}
    if isinstance(named, dict):
        found = {named.get("type")}
    kind = found.pop() if len(found) == 1 else None
    return kind if isinstance(kind, str) else None


def _unknown_adapter(folder: Path, adapter: str | None) -> ProjectError:
    known = ", ".join(DIALECTS)
    if adapter is None:
        return ProjectError(
            "it is not known for which database this dbt project is written",
            code="E0181",
            location=Location(str(folder / SETTINGS)),
            notes=("there is neither `target/manifest.json` nor a `profiles.yml` beside it",),
            help=f"name its adapter with --adapter, one of {known}",
        )
    return ProjectError(
        f"queries of the adapter '{adapter}' cannot be read",
        code="E0181",
        location=Location(str(folder / SETTINGS)),
        help=did_you_mean(adapter, DIALECTS, f"name the nearest with --adapter, one of {known}"),
    )


def _kept_names(path: Path) -> dict[str, str]:
    """Names by ids of dbt that an earlier run wrote, or somebody changed."""
    from odfbuild.odf.identity import is_name

    if not path.is_file():
        return {}
    documents = read_documents(read_text(path, str(path)), str(path))
    found = documents[0] if documents else {}
    wrong = None
    if not isinstance(found, dict):
        wrong = "it is no mapping of ids to names"
    else:
        bad = [f"'{name}' of {id_}" for id_, name in found.items() if not is_name(str(name))]
        folded = [str(name).lower() for name in found.values()]
        twice = [name for name in dict.fromkeys(folded) if folded.count(name) > 1]
        if bad:
            wrong = f"{bad[0]} is no name of a dataset: letters, digits, hyphens and dots"
        elif twice:
            wrong = f"'{twice[0]}' is the name of several tables"
    if wrong is not None:
        raise ProjectError(
            f"the names of an earlier migration cannot be used: {wrong}",
            code="E0183",
            location=Location(str(path)),
            help="correct the file, or delete it: names are then made from those of dbt",
        )
    return {str(id_): str(name) for id_, name in found.items()}


# --- Validating ---


def _validated(migrated: Migrated) -> Migrated:
    """With what `odfbuild validate` says of the new project in the items that it is about."""
    with tempfile.TemporaryDirectory(prefix="odfbuild-dbt-") as folder:
        root = Path(folder).resolve()
        for file, text in migrated.texts.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for file, source in migrated.copies.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(source.resolve())
        errors = [
            part for error in _problems(root) for part in error.apart() if part.location is not None
        ]
    by_file: dict[str, list[Note]] = {}
    for error in errors:
        place = error.location
        if place is None:
            continue
        file = os.path.relpath(root / place.file, root)
        help_ = f" ({error.help})" if error.help else ""
        note = Note(f"{error.code}: {error.message}{help_}", Place(file, place.line))
        by_file.setdefault(file, []).append(note)
    return replace(migrated, items=(*_with_problems(migrated, by_file),))


def _problems(root: Path) -> Sequence[OdfbuildError]:
    found = look_at_definitions(root)
    queries = wrong_queries(found).values()
    return [
        *found.errors,
        *(error for errors in queries for error in errors),
        *wrong_settings(found),
        *unit_tests_of(found)[1],
    ]


def _with_problems(migrated: Migrated, by_file: dict[str, list[Note]]) -> list[Item]:
    items: list[Item] = []
    files = {Path(file).stem: file for file in migrated.definitions.values()}
    for item in migrated.items:
        file = files.get(item.target or "", item.target or "")
        wrong = by_file.pop(file, []) if item.status != "not moved" else []
        if file == "odfbuild.yaml" and wrong:
            by_file[file] = wrong  # Which check it is about, its line says.
        elif wrong:
            items.append(replace(item, status="by hand", notes=(*wrong, *item.notes)))
            continue
        items.append(item)
    for file, notes in by_file.items():
        items += [
            Item(kind="setting", name=file, place=note.place, status="by hand", notes=(note,))
            for note in notes
        ]
    return items
