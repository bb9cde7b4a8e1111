"""Methods for the private keys of datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.api.base import Base
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from odfbuild.apply.erase import Erased, ErasurePlan
    from odfbuild.inspect.keys import DatasetKey


class Keys(Base):
    """Private keys of datasets, which sign what is published, and keys of subjects."""

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

    def plan_erasure(self, *subjects: str) -> ErasurePlan:
        """What `erase` would do with these persons, as the subject column names them.

        `PersonalDataError` E1626 to E1628 where it cannot be done here.
        """
        from odfbuild.apply.erase import plan_erasure

        return plan_erasure(self.config(), self._on_heads("plan_erasure"), subjects)

    def erase(self, *subjects: str, lock_timeout: float = LOCK_TIMEOUT) -> Erased:
        """Destroy the keys of persons for good, so that nobody reads their personal values again.

        Signs a statement beside each chain with records of them, and writes published tables anew.
        Errors as `plan_erasure`; nothing is changed then. A second call completes what was cut
        off.
        """
        from odfbuild.apply.erase import erase, plan_erasure
        from odfbuild.store.claims import Waiting

        config, workspace = self.config(), self._on_heads("erase")
        plan = plan_erasure(config, workspace, subjects)
        return erase(config, workspace, plan, Waiting(seconds=lock_timeout))

    def rotate_wrapping_key(self, new: str) -> None:
        """Encrypt the keys of subjects by another wrapping key: a file, `env:NAME` or `kms:KEY`.

        Afterwards, `personal.wrapping` of the machine's configuration has to name it.
        `PersonalDataError` E1622 where a wrapping key cannot be used; nothing is changed then.
        """
        from odfbuild.project.subject_keys import rotate_wrapping_key

        rotate_wrapping_key(self.config(), new)
