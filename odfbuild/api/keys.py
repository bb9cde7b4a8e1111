"""Methods for the private keys of datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.api.base import Base

if TYPE_CHECKING:
    from odfbuild.inspect.keys import DatasetKey


class Keys(Base):
    """The identities of datasets: their private keys, which sign what is published."""

    def private_keys(self, *datasets: str) -> list[DatasetKey]:
        """Where the private keys of datasets (default: all) are; `place` is `None` if not here.

        >>> [(key.dataset, key.place is not None) for key in project.private_keys()]
        [('derived', True), ('root', True)]
        """
        from odfbuild.inspect.keys import dataset_keys

        workspace = self.workspace()
        return dataset_keys(workspace, self._named(workspace, datasets) if datasets else None)

    def export_keys(self, file: str | Path, passphrase: str, *datasets: str) -> int:
        """Write the private keys of datasets (default: all here) to a new encrypted file.

        Returns how many. `PlanError` E1089 where one is not here, `EnvironmentProblem` E0910 where
        the file exists or cannot be written.
        """
        from odfbuild.inspect.keys import export_keys

        workspace = self.workspace()
        names = self._named(workspace, datasets) if datasets else None
        return export_keys(workspace, names, Path(file), lambda: passphrase)

    def import_keys(self, file: str | Path, passphrase: str) -> list[DatasetKey]:
        """Store the private keys of an exported file in this project; returns those that were new.

        No key is replaced. `EnvironmentProblem` E1085 or E1086 when the file cannot be opened,
        E1088 when a key is not that of its dataset; nothing is stored then.
        """
        from odfbuild.inspect.keys import import_keys
        from odfbuild.store.keys import read_bundle

        return import_keys(self._on_heads("import_keys"), read_bundle(Path(file)), passphrase)[0]
