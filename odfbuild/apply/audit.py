"""Run the checks on new records before the commit, and on all committed records.

If a record violates a check, the step is not committed (write, audit, publish). The file of the
step is kept for inspection, and no chain refers to it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import Engine, ViolationsTask
from odfbuild.errors import CheckError, Code, InSettings, Location, OdfbuildError
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.project.config import FILE
from odfbuild.project.settings.checks import Declared, checks_of
from odfbuild.project.source import read_text
from odfbuild.project.yaml.source import locate
from odfbuild.records.checks import Asked, KAnonymous, Relationship, Sql
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.identity import DatasetId
    from odfbuild.records.audit import Violation

FOLDER = "rejected"
"""Folder in the cache for files that did not keep to a check."""


class Audits(Value):
    """Checks of a project's datasets, which lies in the folder `root`.

    `engine` is asked for only where a check is a query.
    """

    root: Path
    declared: Sequence[Declared]
    workspace: Workspace
    engine: Callable[[], Engine]

    def of(self, dataset: str, warn: Callable[[Violation], None]) -> Audit | None:
        """The checks of a dataset; `None` when there are none. `warn` hears what is let pass."""
        asked = checks_of(self.declared, dataset)
        return Audit(dataset, asked, self, warn) if asked else None

    def committed(self, names: Iterable[str]) -> dict[str, tuple[Violation, ...]]:
        """What all records of those `names` that have checks do not keep to, by dataset."""
        found = ((name, self.of(name, lambda violation: None)) for name in names)
        return {name: audit.committed() for name, audit in found if audit is not None}

    def place(self, path: Sequence[str | int]) -> Location | None:
        """Where a check is declared; `None` when odfbuild.yaml can no longer be read."""
        with contextlib.suppress(OSError, OdfbuildError):
            return locate(read_text(self.root / FILE, FILE), FILE, 0, ("content", "checks", *path))
        return None


class Audit(Value):
    """The checks of one dataset."""

    dataset: str
    asked: tuple[Asked, ...]
    audits: Audits
    warn: Callable[[Violation], None]

    @property
    def reads_its_own(self) -> bool:
        """Whether a check compares new records with those that the dataset has."""
        checks = (each.check for each in self.asked)
        return any(isinstance(each, Relationship) and each.to == self.dataset for each in checks)

    def staged(
        self,
        file: Path,
        schema: pa.Schema,
        vocab: Vocabulary,
        dataset_id: DatasetId,
        base: Projection | None,
        waiting: Sequence[Path] = (),
    ) -> None:
        """Look at a file that is about to be committed, behind `base` and files that wait.

        The dataset need not exist yet.

        Raises `CheckError` E0540 when it does not keep to a check, E0551 when the state that it
        leads to is not k-anonymous, and keeps it aside.
        """
        earlier: Sequence[Path] = ()
        if any(isinstance(each.check, KAnonymous) for each in self.asked):
            earlier = self.audits.workspace.committed(self.dataset, base).files() + tuple(waiting)
        found = self.violations([file], schema, vocab, dataset_id, earlier)
        for each in found:
            if each.warn:
                self.warn(each)
        broken = [each for each in found if not each.warn]
        if not broken:
            return
        kept = self._keep(file)
        anonymity = all(isinstance(each.check, KAnonymous) for each in broken)
        raise CheckError(
            f"with its new records '{self.dataset}' is not k-anonymous"
            if anonymity
            else f"the new records of '{self.dataset}' violate its checks",
            code="E0551" if anonymity else Code.CHECK_VIOLATED,
            dataset=self.dataset,
            notes=(
                *map(str, broken),
                *([f"records: {kept}"] if kept else []),
            ),
            help="correct the data or the query, or change `checks` in odfbuild.yaml; "
            "nothing was committed for it",
            location=self.audits.place(broken[0].path),
        )

    def committed(self) -> tuple[Violation, ...]:
        """Look at all records of the dataset; `IntegrityError` for a slice that was damaged."""
        workspace = self.audits.workspace
        state = workspace.projection(self.dataset)
        if state is None or state.schema is None:
            return ()
        committed = workspace.committed(self.dataset, state)
        schema, vocab = schema_of(state.schema), vocabulary_of(state.vocab)
        try:
            return self.violations(committed.files(), schema, vocab, state.dataset_id)
        except OdfbuildError:
            raise
        except Exception:  # whatever libraries make of bytes that are not what was written
            from odfbuild.records.intact import check_slice
            from odfbuild.records.reading import damage

            for each in committed.slices():
                fault = check_slice(each.file, each.data, vocab.offset)
                if fault is not None:
                    raise damage(each, fault.code, fault.what) from None
            raise

    def violations(
        self,
        files: Sequence[Path],
        schema: pa.Schema,
        vocab: Vocabulary,
        dataset_id: DatasetId,
        earlier: Sequence[Path] = (),
    ) -> tuple[Violation, ...]:
        """What the records in these files do not keep to, behind those in `earlier` ones."""
        from odfbuild.records.audit import audit

        plain: Sequence[Path] = ()

        def query(check: Sql) -> tuple[int, str]:
            task = ViolationsTask(
                dataset=self.dataset,
                query=check.query,
                files=tuple(plain),
                schema=schema,
                vocab=vocab,
            )
            return self.audits.engine().run(task)

        try:
            with self._plain([*earlier, *files], self.dataset, dataset_id) as opened:
                before, plain = opened[: len(earlier)], opened[len(earlier) :]
                found = audit(self.dataset, plain, vocab, self.asked, self._values, query, before)
            personal = self.audits.workspace.personal
            if personal is not None and personal.has(self.dataset):
                found = tuple(each.without_example() for each in found)
            return found
        except CheckError as error:
            place = error.location
            if not isinstance(place, InSettings):
                raise
            _, *declared = place.path
            raise error.at(self.audits.place(declared)) from None

    @contextlib.contextmanager
    def _plain(
        self, files: Sequence[Path], dataset: str, dataset_id: DatasetId
    ) -> Iterator[Sequence[Path]]:
        """The files with plain values in personal columns, which checks are about."""
        workspace = self.audits.workspace
        personal = workspace.personal
        scope = personal.of(dataset, dataset_id) if personal is not None else None
        if personal is None or scope is None or not files:
            yield files
            return
        from odfbuild.records.personal.files import converted
        from odfbuild.records.personal.values import opening

        with scratch_folder(workspace.cache, "checks") as folder:
            convert = opening(personal, scope)
            yield [converted(each, scope, convert, folder) for each in files]

    def _values(self, check: Relationship) -> pa.Array:
        """All values that the other dataset has in the column now."""
        from odfbuild.records.audit import no_such_column, values_in_state

        workspace = self.audits.workspace
        state = workspace.projection(check.to)
        if state is None:
            raise CheckError(
                f"a check of '{self.dataset}' refers to '{check.to}', which has no chain",
                code="E0542",
                dataset=self.dataset,
                notes=(f"check: {check}",),
                help="correct the name in `checks` of odfbuild.yaml, or apply that dataset first",
            )
        columns = schema_of(state.schema) if state.schema else pa.schema([])
        if check.field not in columns.names:
            raise no_such_column(check.to, check.field, columns.names, check)
        files = workspace.committed(check.to, state).files()
        with self._plain(files, check.to, state.dataset_id) as plain:
            return values_in_state(plain, check.field, vocabulary_of(state.vocab))

    def _keep(self, file: Path) -> Path | None:
        kept = self.audits.workspace.cache / FOLDER / f"{self.dataset.replace('/', '-')}.parquet"
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)  # a link would lead the copy elsewhere
            shutil.copyfile(file, kept)
            return kept
        return None
