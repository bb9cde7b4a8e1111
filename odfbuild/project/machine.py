"""What the owner of a machine decides, and no project: what runs programs or leads out of it.

A project comes from whoever opened a pull request. So what Spark loads, which programs run and
which folders outside are read stands in a file of the user, or in variables of the environment;
either goes before `odfbuild.yaml`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from odfbuild.declared_settings import Fits, read, schema_of, setting
from odfbuild.engine.settings import MASTER, SANDBOX, EngineSettings, Sandbox, is_for_projects
from odfbuild.errors import ProjectError
from odfbuild.ingest.settings import IngestSettings
from odfbuild.project.settings.notifying import Notify
from odfbuild.project.settings.personal_keys import PersonalKeys
from odfbuild.project.settings.serving import Serving
from odfbuild.sql.translate.named import Configured
from odfbuild.values import Value

VARIABLE = "ODFBUILD_CONFIG"
"""Names another file than the one in the user's folder of configuration."""

_CONTAINER, _PIPES, _FOLDERS = (
    f"ODFBUILD_{name}" for name in ("CONTAINER_RUNTIME", "PIPES", "FOLDERS")
)

SERVE_TOKEN = "ODFBUILD_SERVE_TOKEN"
"""A token that may read and write all datasets that are served."""

_OF_PROGRAMS = ("container", "pipes")
"""Keys of `ingest` that are the machine's."""


class Machine(Value):
    """The settings of a machine."""

    engine: EngineSettings = setting(EngineSettings())
    engines: Mapping[str, Configured] = setting(
        {}, "Engines of this machine, by name; they go before those of a project"
    )
    ingest: Annotated[IngestSettings, Fits(**schema_of(IngestSettings, only=_OF_PROGRAMS))] = (
        setting(IngestSettings())
    )
    folders: tuple[str, ...] = setting((), "Folders outside of a project that planning may read")
    serve: Serving = setting(Serving(), "Who may use `odfbuild serve`, and how much")
    notify: tuple[Notify, ...] = setting((), "Whom to tell of failures; all entries count")
    personal: PersonalKeys = setting(PersonalKeys(), "Where the keys of subjects are")


class MachineFile(Value):
    """All of the file."""

    kind: Literal["Machine"] = setting()
    version: Literal[1] = setting()
    content: Machine = setting()


def machine_file() -> Path | None:
    """The file of the machine's owner, which need not be there; `None` for one without a home."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    try:
        base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:
        return None
    return Path(base) / "odfbuild" / "machine.yaml"


def refuse_within(file: Path, top: Path) -> None:
    """Raise `ProjectError` E0171 when the file lies where a pull request can bring it."""
    if file.resolve().is_relative_to(top):
        raise ProjectError(
            f"the machine's own configuration lies in a project: {file}",
            code="E0171",
            notes=("whoever changes the project could change what this machine runs",),
            help=f"move it out of {top}, and name its place in {VARIABLE}",
        )


def with_variables(content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` of the file, with what variables of the environment say instead."""
    ingest = dict(content.get("ingest") or {})
    if runtime := os.environ.get(_CONTAINER):
        ingest["container"] = {**(ingest.get("container") or {}), "runtime": shlex.split(runtime)}
    if pipes := os.environ.get(_PIPES):
        ingest["pipes"] = shlex.split(pipes)
    folders = os.environ.get(_FOLDERS)
    named = folders.split(os.pathsep) if folders else content.get("folders") or []
    serve = dict(content.get("serve") or {})
    if SERVE_TOKEN in os.environ:
        owner = {"name": SERVE_TOKEN, "token": f"${{{{ env.{SERVE_TOKEN} }}}}", "write": ["*"]}
        serve["access"] = [*(serve.get("access") or []), owner]
    engine = content.get("engine") or {}
    return {
        "engine": engine,
        "engines": read(Machine, {"engines": content.get("engines") or {}}).engines,
        "ingest": ingest,
        "folders": named,
        "serve": serve,
        "notify": read(Machine, {"notify": content.get("notify") or []}).notify,
        "personal": read(Machine, {"personal": content.get("personal") or {}}).personal,
    }


def merged(project: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a project, with those of the machine before them."""
    conf = {**(project.get("conf") or {}), **(machine.get("conf") or {})}
    return {**project, **machine, **({"conf": conf} if conf else {})}


def not_for_projects(
    content: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What the `content` of odfbuild.yaml must not decide: where, why, a variable that may."""
    engine, ingest = content.get("engine") or {}, content.get("ingest") or {}
    master = engine.get("master", "local[*]")
    if re.fullmatch(r"local(\[.*\])?", master) is None:
        why = "a cluster runs the work, with access to what this machine shares"
        yield ("engine", "master"), why, f"{MASTER}={master.split('/;')[0]}"
    if engine.get("sandbox") == Sandbox.OFF:
        yield ("engine", "sandbox"), "it disables the sandbox around Spark", f"{SANDBOX}=off"
    for name, value in (engine.get("conf") or {}).items():
        if not is_for_projects(name, value):
            yield ("engine", "conf", name), "Spark runs programs by some of its settings", ""
    for name, entry in (content.get("engines") or {}).items():
        found = entry if isinstance(entry, dict) else {}
        if found.get("command"):
            yield ("engines", name, "command"), "it names a program that runs", ""
        if found.get("network") == "published":
            yield ("engines", name, "network"), "it lets a container reach other machines", ""
    if "container" in ingest:
        runtime = " ".join((ingest["container"] or {}).get("runtime") or ["podman"])
        why = "it names a program, and what a container may reach"
        yield ("ingest", "container"), why, f"{_CONTAINER}={shlex.quote(runtime)}"
    if "pipes" in ingest:
        yield ("ingest", "pipes"), "it lets programs run", f"{_PIPES}='{' '.join(ingest['pipes'])}'"
