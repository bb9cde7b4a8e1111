"""The keys of subjects that the machine's configuration names.

The configuration is read here, above the room of the store, which only knows addresses.
"""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import PersonalDataError
from odfbuild.project.config import load_config
from odfbuild.project.machine import machine_file
from odfbuild.project.model import Config
from odfbuild.store.subject_keys import KeyStore, SubjectKeys
from odfbuild.store.wrapping_keys import wrapping_key


def subject_keys(root: Path) -> SubjectKeys | None:
    """The keys of the project in the folder `root`; `None`: none are configured here."""
    return key_store(load_config(root))


def key_store(config: Config) -> KeyStore | None:
    """The same, of a project whose configuration is known.

    `PersonalDataError` E1620 where there is no wrapping key for them.
    """
    found, home = config.personal_keys, machine_file()
    if found.keys is None:
        return None
    if found.wrapping is None:
        raise PersonalDataError(
            "the keys of subjects have no wrapping key",
            code="E1620",
            help=f"write `personal: {{wrapping: FILE}}` in {home}: a file, which is made if it is "
            "not there, `env:VARIABLE`, or `kms:KEY`",
        )
    base = config.root if home is None else home.parent
    keys = found.keys if "://" in found.keys else str(Path(found.keys).expanduser())
    return KeyStore(keys, wrapping_key(found.wrapping, base), base)
