"""The keys of subjects that the machine's configuration names.

The configuration is read here, above the room of the store, which only knows addresses.
"""

from __future__ import annotations

from odfbuild.errors import PersonalDataError
from odfbuild.project.key_place import named_wrapping, open_keys
from odfbuild.project.model import Config
from odfbuild.store.subject_keys import KeyStore


def key_store(config: Config) -> KeyStore | None:
    """The keys of a project; `None`: none are configured here.

    `PersonalDataError` E1620 where there is no wrapping key for them.
    """
    return open_keys(config.personal_keys, config.root, config.state)


def required_keys(config: Config) -> KeyStore:
    """The same; `PersonalDataError` E1627 where none are configured."""
    keys = key_store(config)
    if keys is None:
        undeclared = (
            "`personal` in odfbuild.yaml declares no columns, so nothing has been encrypted"
        )
        raise PersonalDataError(
            "this machine has no keys of subjects",
            code="E1627",
            notes=() if config.personal else (undeclared,),
            help="run the command where they are; their place is `personal: {keys: …}` of the "
            "machine's configuration",
        )
    return keys


def rotate_wrapping_key(config: Config, new: str) -> None:
    """Encrypt the keys of subjects by the wrapping key `new`; a file is made if it is not there.

    `PersonalDataError` E1622 where one of the wrapping keys cannot be used; nothing is changed.
    """
    wrapping = named_wrapping(new, config.root)
    wrapping.prepare()
    required_keys(config).rotate(wrapping)
