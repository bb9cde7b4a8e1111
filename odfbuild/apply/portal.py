"""Let a portal take over the records of the dataset that it follows.

The data files are the same, object by object, so no engine runs and nothing is computed. The blocks
are those of a root: they name no input, no query and no block of the other chain.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from odfbuild.apply.transaction import Transaction
from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransform,
    MetadataBlock,
    SetDataSchema,
)
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.portal import rewritten
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class Portal(Value):
    """The portal `name`, which follows the dataset `of`."""

    workspace: Workspace
    name: str
    of: str

    def not_yet_published(self) -> list[MetadataBlock]:
        """The blocks of the other chain behind the records that the portal has, oldest first.

        `PlanError` E1653 where the records before them are not those of the portal.
        """
        source = self.workspace.projection(self.of)
        state = self.workspace.projection(self.name)
        if source is None:
            return []
        last = None if state is None or state.last_offset is None else self._newest(state)
        found: list[MetadataBlock] = []
        for _, block in self.workspace.dataset(self.of).walk(source.head):
            data = _data(block)
            if data is not None and last is not None:
                if data == last:
                    return found[::-1]
                if data.offset_interval.end <= last.offset_interval.end:
                    break
            found.append(block)
        if last is not None:
            raise rewritten(self.name, self.of)
        return found[::-1]

    def _newest(self, state: Projection) -> DataSlice | None:
        """What the newest block of the portal with records says of them."""
        blocks = (block for _, block in self.workspace.dataset(self.name).walk(state.head))
        return next((data for block in blocks if (data := _data(block)) is not None), None)

    def stage(self, transaction: Transaction, block: MetadataBlock, scratch: Path) -> int:
        """Add what a block of the other chain says of records; returns how many there are.

        `CheckError` as of `Audit.staged`: checks of the portal stand between it and the others.
        `PlanError` E1654 where the system columns have other names than in the portal.
        """
        event, state = block.event, transaction.state
        if isinstance(event, SetDataSchema) and event != state.schema:
            self._check_vocabulary(state)
            transaction.add(event)
        if not isinstance(event, AddData | ExecuteTransform):
            return 0
        data, watermark = event.new_data, event.new_watermark
        if watermark is not None and state.watermark is not None and watermark <= state.watermark:
            watermark = None
        if data is None and watermark is None:
            return 0
        if data is not None:
            self._take_over(transaction, data, scratch)
        transaction.add(
            AddData(prev_offset=state.last_offset, new_data=data, new_watermark=watermark)
        )
        return 0 if data is None else data.offset_interval.end - data.offset_interval.start + 1

    def _take_over(self, transaction: Transaction, data: DataSlice, scratch: Path) -> None:
        """The file as it is; the original stays where it lies."""
        file = scratch / str(data.physical_hash)
        shutil.copyfile(self.workspace.dataset(self.of).bring("data", data.physical_hash), file)
        state = transaction.state
        if transaction.audit is not None and state.schema is not None:
            waiting = [path for path, _ in transaction.objects]
            schema, vocab = schema_of(state.schema), vocabulary_of(state.vocab)
            identity = state.dataset_id
            transaction.audit.staged(file, schema, vocab, identity, transaction.base, waiting)
        transaction.add_data(file, data.physical_hash)

    def _check_vocabulary(self, state: Projection) -> None:
        source = self.workspace.projection(self.of)
        if source is not None and vocabulary_of(source.vocab) != vocabulary_of(state.vocab):
            raise PlanError(
                f"'{self.name}' has other names of system columns than '{self.of}'",
                code="E1654",
                dataset=self.name,
                help=f"give its definition the same SetVocab as that of '{self.of}'",
            )


def _data(block: MetadataBlock) -> DataSlice | None:
    event = block.event
    return event.new_data if isinstance(event, AddData | ExecuteTransform) else None
