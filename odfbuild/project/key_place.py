"""Open the keys of subjects at the place that the machine's configuration names."""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import PersonalDataError
from odfbuild.project.machine import machine_file
from odfbuild.project.settings.personal_keys import PersonalKeys
from odfbuild.store.subject_keys import KeyStore
from odfbuild.store.wrapping_keys import wrapping_key


def open_keys(found: PersonalKeys, root: Path) -> KeyStore | None:
    """The keys of the project in the folder `root`; `None`: none are configured here.

    `PersonalDataError` E1620 where there is no wrapping key for them.
    """
    home = machine_file()
    if found.keys is None:
        return None
    if found.wrapping is None:
        raise PersonalDataError(
            "the keys of subjects have no wrapping key",
            code="E1620",
            help=f"write `personal: {{wrapping: FILE}}` in {home}: a file, which is made if it is "
            "not there, `env:VARIABLE`, or `kms:KEY`",
        )
    base = root if home is None else home.parent
    keys = found.keys if "://" in found.keys else str(Path(found.keys).expanduser())
    return KeyStore(keys, wrapping_key(found.wrapping, base), base)
