"""What is wrong with a step, by what was recorded and what the same step gives now. Pure.

But for its name, nothing here knows who recomputed it: an engine here, or executors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from odfbuild.engine.contract import Told
from odfbuild.engine.release import engine_version
from odfbuild.engine.slice import dataset_schema
from odfbuild.errors import Code, IntegrityError, OdfbuildError
from odfbuild.inspect.verify.finding import Finding
from odfbuild.inspect.verify.replay import Replay, is_reproduced, watermarks_in_question
from odfbuild.odf.chain.step import told_watermark
from odfbuild.odf.model import DataSlice, SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.schema.compare import incompatibilities
from odfbuild.odf.schema.evolution import required_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.first_difference import RecordDifference, ValueDifference
from odfbuild.sql.translate.named import is_remote_release
from odfbuild.sql.translate.runnable import ran_on_spark, release_for
from odfbuild.store.dataset import DatasetStore
from odfbuild.wording import count

HELP = (
    "the records do not follow from the inputs: pull the dataset from a repository that you trust, "
    "or rebuild it (odfbuild apply --allow rebuild:{name}+)"
)
NO_KEYS = Code.NO_SUBJECT_KEYS
"""A step with personal columns is neither right nor wrong where there are no keys."""
OTHER_ENGINE = "verify it with a program that has this engine; hashes, links and rules were checked"


def engine_of(transform: SetTransform) -> str:
    """The engine of a query, with its version if that is recorded."""
    return " ".join(filter(None, (transform.transform.engine, transform.transform.version)))


def schema_in_force(name: str, replay: Replay, result: pa.Schema) -> pa.Schema:
    """The schema that data files of a step have, whose result now has the schema `result`."""
    assert replay.before.schema is not None, "it has records"
    committed = read_schema(replay.before.schema)
    required = required_as(from_pyarrow(result), committed)
    vocab = vocabulary_of(replay.before.vocab)
    found = from_pyarrow(dataset_schema(to_pyarrow(required), vocab))
    differences = incompatibilities(committed, found)
    if differences:
        raise IntegrityError(
            f"the step now has a result of another schema: {'; '.join(differences)}",
            code=Code.NOT_REPRODUCIBLE,
            dataset=name,
            help=HELP.format(name=name),
        )
    return to_pyarrow(committed)


_Difference = Callable[[Multihash], RecordDifference | None]
"""The first record in which what a step gives now differs from the object that was recorded."""


def compare(
    store: DatasetStore,
    replay: Replay,
    data: DataSlice | None,
    told: Told | None,
    difference: _Difference,
) -> Finding | None:
    """What is wrong with a step that gives `data` now; `told` is what its engine says beside."""
    recorded = replay.recorded
    marks = watermarks_in_question(replay)
    if told is not None:
        promised = [each.step.watermark for each in replay.inputs]
        marks = (told_watermark(replay.before.watermark, told.watermark, promised)[0],)
    replayed = [replace(recorded, new_data=data, new_watermark=mark) for mark in marks]
    if any(is_reproduced(recorded, each) for each in replayed):
        return None
    if is_reproduced(
        replace(recorded, new_watermark=None), replace(replayed[0], new_watermark=None)
    ):
        return finding_of(
            store.name,
            replay,
            "E0821",
            f"the watermark {recorded.new_watermark or 'none'} does not follow from the inputs, "
            f"which give {marks[0] or 'none'}",
        )
    return _other_records(store, replay, data, difference)


def _other_records(
    store: DatasetStore, replay: Replay, data: DataSlice | None, difference: _Difference
) -> Finding:
    recorded = replay.recorded.new_data
    if recorded is None or data is None:
        return finding_of(
            store.name,
            replay,
            Code.NOT_REPRODUCIBLE,
            f"it has {_count(recorded)}, and the same step gives {_count(data)}",
        )
    path = store.object_path("data", recorded.physical_hash)
    found = difference(recorded.physical_hash)
    if found is None:
        message = "its records are the same, but their schema or logical hash is not"
        return finding_of(store.name, replay, Code.NOT_REPRODUCIBLE, message, path=path)
    return finding_of(
        store.name,
        replay,
        Code.NOT_REPRODUCIBLE,
        "its records are not reproducible: the same step gives others"
        + _releases(replay)
        + _hashes(replay, recorded, data),
        path=path,
        offset=recorded.offset_interval.start + found.row,
        differences=found.values,
    )


def _releases(replay: Replay) -> str:
    """That another release of the engine may be the reason, if it was another one."""
    transform = replay.transform.transform
    used = replay.before.transform
    if used is not None and is_remote_release(used.transform.version):
        recorded, now = transform.version, used.transform.version
        return "" if recorded == now else f" (computed by {recorded}, recomputed by {now})"
    if not ran_on_spark(transform):
        return f" (computed by {engine_of(replay.transform)}, recomputed by Spark)"
    recorded, now = transform.version, release_for(transform, engine_version())
    if recorded in (None, now):
        return ""
    return f" (computed by release {recorded}, recomputed by {now})"


def _hashes(replay: Replay, recorded: DataSlice, data: DataSlice) -> str:
    """Both logical hashes, for those who make an engine that is a program of its own."""
    if not is_remote_release(replay.transform.transform.version):
        return ""
    return f"; logical hashes: {recorded.logical_hash}, now {data.logical_hash}"


def _count(data: DataSlice | None) -> str:
    if data is None:
        return "no records"
    number = data.offset_interval.end - data.offset_interval.start + 1
    return count(number, "record")


def refused(name: str, replay: Replay, error: OdfbuildError) -> Finding:
    """The finding for a step that could not be recomputed."""
    if error.code == Code.NOT_REPRODUCIBLE:
        return finding_of(name, replay, Code.NOT_REPRODUCIBLE, error.message)
    if error.code == NO_KEYS:
        return replace(finding_of(name, replay, NO_KEYS, error.message), help=error.help or "")
    code = (
        Code.RECORDED_ENGINE_MISSING
        if error.code in (Code.IMAGE_MISSING, Code.RECORDED_ENGINE_MISSING)
        else Code.NOT_RECOMPUTED
    )
    return replace(
        finding_of(name, replay, code, f"its step cannot be recomputed: {error.message}"),
        help=OTHER_ENGINE if error.code == Code.NOT_TRANSLATED else error.help or "",
    )


def finding_of(
    name: str,
    replay: Replay,
    code: str,
    message: str,
    *,
    path: Path | None = None,
    offset: int | None = None,
    differences: tuple[ValueDifference, ...] = (),
) -> Finding:
    """A finding about the block of a step."""
    return Finding(
        dataset=name,
        code=code,
        message=message,
        help=HELP.format(name=name),
        block=replay.block,
        sequence_number=replay.sequence_number,
        path=path,
        offset=offset,
        differences=differences,
    )
