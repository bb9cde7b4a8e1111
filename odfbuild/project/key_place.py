"""Open the keys of subjects at the place that the machine's configuration names."""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import PersonalDataError
from odfbuild.project.machine import machine_file
from odfbuild.project.settings.personal_keys import PersonalKeys
from odfbuild.store.stewardship import erased_names
from odfbuild.store.subject_keys import KeyStore
from odfbuild.store.wrapping_keys import Wrapping, wrapping_key


def open_keys(found: PersonalKeys, root: Path, state: Path) -> KeyStore | None:
    """The keys of the project in the folder `root`; `None`: none are configured here.

    Subjects that statements in the chains in `state` name have no key, whatever the store says.
    `PersonalDataError` E1620 where there is no wrapping key for them.
    """
    if found.keys is None:
        return None
    if found.wrapping is None:
        raise PersonalDataError(
            "the keys of subjects have no wrapping key",
            code="E1620",
            help=f"write `personal: {{wrapping: FILE}}` in {machine_file()}: a file, which is made "
            "if it is not there, `env:VARIABLE`, or `kms:KEY`",
        )
    keys = found.keys if "://" in found.keys else str(Path(found.keys).expanduser())
    wrapping = named_wrapping(found.wrapping, root)
    return KeyStore(keys, wrapping, _base(root), lambda: erased_names(state))


def named_wrapping(address: str, root: Path) -> Wrapping:
    """A wrapping key; the path of a file is relative to the machine's configuration."""
    return wrapping_key(address, _base(root))


def _base(root: Path) -> Path:
    home = machine_file()
    return root if home is None else home.parent
