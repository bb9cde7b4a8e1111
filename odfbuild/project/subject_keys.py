"""The keys of subjects that the machine's configuration names.

The configuration is read here, above the room of the store, which only knows addresses.
"""

from __future__ import annotations

from pathlib import Path

from odfbuild.project.config import load_config
from odfbuild.project.key_place import open_keys
from odfbuild.project.model import Config
from odfbuild.store.subject_keys import KeyStore, SubjectKeys


def subject_keys(root: Path) -> SubjectKeys | None:
    """The keys of the project in the folder `root`; `None`: none are configured here."""
    return key_store(load_config(root))


def key_store(config: Config) -> KeyStore | None:
    """The same, of a project whose configuration is known.

    `PersonalDataError` E1620 where there is no wrapping key for them.
    """
    return open_keys(config.personal_keys, config.root)
