"""Values of variables: what files declare, and what is given for one command.

Precedence, lowest to highest: `vars` of odfbuild.yaml, `vars/<environment>.yaml`, `--vars-file`,
`ODFBUILD_VAR_<name>`, `--var`. What is given must be declared in a file, so that a misspelt name
changes nothing unnoticed; the rest of the process environment is out of reach for templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odfbuild.errors import Errors, Location, ProjectError
from odfbuild.project.overrides import Overrides
from odfbuild.project.yaml.source import read_documents
from odfbuild.wording import did_you_mean

FOLDER = "vars"
"""Where each environment may have a file of variables."""
PREFIX = "ODFBUILD_VAR_"
"""What such a variable of the process environment begins with."""


def variables(root: Path, declared: Mapping[str, Any], given: Overrides) -> Mapping[str, Any]:
    """All variables of a project; raises `Errors` E0116 for undeclared ones, or E0117."""
    found = dict(declared)
    if given.env is not None:
        found |= _file_of(root, given.env)
    known = set(found)
    for file in given.files:
        found |= _read(file, str(file))
    errors = [_undeclared(name, known, "the file") for name in sorted(set(found) - known)]
    # A machine may have variables for other projects, too.
    found |= {name: _value(text, PREFIX + name) for name, text in given.process if name in known}
    for name, text in given.values:
        if name not in known:
            errors.append(_undeclared(name, known, "--var"))
        found[name] = _value(text, f"--var {name}")
    if errors:
        raise Errors(errors)
    return found


def given_values(given: Overrides) -> dict[str, Any]:
    """What `--vars-file` and `--var` give, whether a project declares it or not; raises E0117."""
    found: dict[str, Any] = {}
    for file in given.files:
        found |= _read(file, str(file))
    return found | {name: _value(text, f"--var {name}") for name, text in given.values}


def _file_of(root: Path, env: str) -> dict[str, Any]:
    file = root / FOLDER / f"{env}.yaml"
    return _read(file, f"{FOLDER}/{env}.yaml") if file.exists() else {}


def _read(file: Path, name: str) -> dict[str, Any]:
    from odfbuild.project.source import read_text

    documents = read_documents(read_text(file, name), name)
    data = documents[0] if documents else None
    if data is None:
        return {}
    if not isinstance(data, dict) or len(documents) > 1:
        raise ProjectError(
            f"{name} must be one mapping of names to values",
            code="E0117",
            location=Location(name, 1, 1),
            help="for example `long_haul_miles: 2000`",
        )
    return data


def _value(text: str, name: str) -> Any:
    """A value as YAML spells it: numbers and lists are what they look like."""
    documents = read_documents(text, name)
    return documents[0] if documents else ""


def _undeclared(name: str, known: set[str], where: str) -> ProjectError:
    return ProjectError(
        f"{where} gives '{name}' a value, and no file declares that variable",
        code="E0116",
        help=did_you_mean(
            name,
            known,
            f"add '{name}' to `vars` in odfbuild.yaml, or to the file of the environment",
        ),
    )
