"""From one step of a transformation to what the engine is asked.

`apply` and `verify` share it, so that a step is done again exactly as it was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from odfbuild.engine.contract import InputSlices, TransformTask, Vocabulary, vocabulary_of
from odfbuild.odf.arrow_schema import schema_of
from odfbuild.odf.model import SetDataSchema, SetVocab, TransformSql
from odfbuild.odf.step import InputStep
from odfbuild.store.dataset import DatasetStore


@dataclass(frozen=True, slots=True)
class StepInput:
    """An input of one step: its name in queries, and schema and vocabulary at the step's end."""

    alias: str
    store: DatasetStore
    step: InputStep
    schema: SetDataSchema
    vocab: SetVocab | None

    def as_slices(self) -> InputSlices:
        """The records of the step for the engine."""
        interval = self.step.offset_interval
        return InputSlices(
            alias=self.alias,
            schema=schema_of(self.schema),
            vocab=vocabulary_of(self.vocab),
            files=tuple(self.store.object_path("data", s.physical_hash) for s in self.step.slices),
            first=interval.start if interval else None,
            last=interval.end if interval else None,
        )


def transform_task(
    dataset: str,
    transform: TransformSql,
    inputs: Sequence[StepInput],
    vocab: Vocabulary,
    scratch: Path,
) -> TransformTask:
    """The request for one step of `dataset`."""
    return TransformTask(
        dataset=dataset,
        transform=transform,
        inputs=tuple(each.as_slices() for each in inputs),
        vocab=vocab,
        scratch=scratch,
    )
