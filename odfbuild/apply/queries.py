"""Check the queries of a project without any data: result schemas, and errors with their places.

Schemas flow from inputs to readers: those that chains have, those that sources declare, those that
queries give. What only data can tell stays unknown, and so do its readers. A query that was found
right over the same schemas by the same engine is not checked again. Source: Open Data Fabric,
"Validate Query".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.engine.contract import Engine, InputSlices, ScreenTask, ValidateTask
from odfbuild.engine.slice import dataset_schema
from odfbuild.errors import Errors, OdfbuildError, QueryError, together
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId, DatasetRef
from odfbuild.odf.model import (
    AddPushSource,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformSql,
)
from odfbuild.odf.schema.arrow_schema import declared_columns, schema_of
from odfbuild.odf.schema.evolution import grow, required_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.plan.graph.dag import dag_of, generations
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.plan.queries.subjects import texts_in
from odfbuild.sql.translate.named import NO_ENGINES, Engines
from odfbuild.sql.translate.runnable import release_for
from odfbuild.store.disposable import code_stamp, read_disposable, write_disposable
from odfbuild.survey.accepted_texts import AcceptedTexts
from odfbuild.values import Value

_AT_ONCE = 4
_REMEMBERED = 20_000
_MILLIS_UTC = pa.timestamp("ms", "UTC")


class Checked(Value, kw_only=True):
    """What came of it: errors by dataset, how many queries are right, which cannot be told yet.

    `results` have schema and vocabulary of the datasets whose columns are known, without records,
    and `inputs` those of the inputs of transformations whose inputs are all known.
    """

    errors: Mapping[str, OdfbuildError] = field(default_factory=dict)
    right: int = 0
    unknown: tuple[str, ...] = ()
    results: Mapping[str, InputSlices] = field(default_factory=dict)
    inputs: Mapping[str, tuple[InputSlices, ...]] = field(default_factory=dict)


class KnownQueries:
    """Result schemas of queries that were checked already, kept in `folder` for next time."""

    def __init__(self, folder: Path, engine_version: str) -> None:
        from importlib.metadata import version

        self.folder = folder
        self._file = folder / "queries.bin"
        # The text of a query of another engine is translated by sqlglot.
        by = f"{engine_version} {version('sqlglot')}\n"
        self._accepted = AcceptedTexts(folder, engine_version)
        self._stamp = b"odfbuild queries 2\n" + code_stamp() + by.encode()
        self._before: dict[bytes, bytes] = (
            read_disposable(self._file, self._stamp, dict[bytes, bytes]) or {}
        )
        self._used: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> pa.Schema | None:
        """The schema that was found for `key`."""
        found = self._before.get(key)
        if found is None:
            return None
        self._used[key] = found
        return pa.ipc.read_schema(pa.py_buffer(found))

    def put(self, key: bytes, schema: pa.Schema) -> None:
        """Remember a schema."""
        self._used[key] = schema.serialize().to_pybytes()

    def accept(self, subjects: Iterable[Subject]) -> None:
        """Remember that the engine understands the texts of these."""
        self._accepted.add(text for each in subjects for text in texts_in(each.events))

    def save(self) -> None:
        """Keep what was found, and of the rest what came last."""
        if self._used.keys() <= self._before.keys():
            return
        kept = {**self._before, **self._used}
        newest = list(kept.items())[-_REMEMBERED:]
        write_disposable(self._file, self._stamp, dict(newest))


class Subject(Value, kw_only=True):
    """A dataset to check: its `inputs`, and `events` with its query or source.

    Without such an event its committed query holds.
    `fresh`: it begins anew, so that there is no committed schema to fit.
    """

    name: str
    events: Sequence[MetadataEvent]
    inputs: Sequence[str] = ()
    fresh: bool = False


def changed_queries(items: Iterable[DatasetPlan]) -> list[Subject]:
    """What a plan commits that has a query: new and changed transformations and sources.

    Beside these, readers of all columns that gain what their inputs gain.
    """
    shaping = SetTransform | SetPollingSource | AddPushSource
    return [
        Subject(
            name=item.name, events=events, inputs=item.inputs, fresh=Action.REBUILD in item.actions
        )
        for item in items
        for events in [tuple(change.after for change in item.changes)]
        for gains in [item.columns is not None and bool(item.columns.added)]
        if item.refusal is None and (gains or any(isinstance(event, shaping) for event in events))
    ]


def check_queries(
    subjects: Iterable[Subject],
    projections: Mapping[str, Projection],
    get_engine: Callable[[], Engine],
    known: KnownQueries,
    engines: Engines = NO_ENGINES,
) -> Checked:
    """Check the queries of `subjects` over the schemas that their inputs will have.

    An input that is no subject is taken as its chain says. `get_engine` is called only when there
    is something new to check.
    """
    run = _Check(projections, get_engine, known, engines)
    by_name = {each.name: each for each in subjects}
    layers = generations(
        dag_of({each.name: [i for i in each.inputs if i in by_name] for each in by_name.values()})
    )
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for layer in layers:
            list(pool.map(run.check, [by_name[name] for name in layer]))
    known.save()
    known.accept(each for name, each in by_name.items() if name not in run.errors)
    return Checked(
        errors={name: run.errors[name] for name in by_name if name in run.errors},
        right=len(run.right),
        unknown=tuple(name for name in by_name if name in run.unknown),
        results={
            name: InputSlices(alias=name, schema=schema, vocab=run.vocabs[name.lower()])
            for name in by_name
            if (schema := run.schemas[name.lower()]) is not None
        },
        inputs=run.inputs,
    )


class _Check:
    """The state of one check; `check` may run in several threads at once."""

    def __init__(
        self,
        projections: Mapping[str, Projection],
        get_engine: Callable[[], Engine],
        known: KnownQueries,
        engines: Engines,
    ) -> None:
        self.engines = engines
        self.states = {name.lower(): state for name, state in projections.items()}
        self.names = {state.dataset_id: name for name, state in self.states.items()}
        self.get_engine = get_engine
        self.known = known
        self.schemas: dict[str, pa.Schema | None] = {}
        self.vocabs: dict[str, Vocabulary] = {}
        self.errors: dict[str, OdfbuildError] = {}
        self.unknown: set[str] = set()
        self.right: list[str] = []
        self.inputs: dict[str, tuple[InputSlices, ...]] = {}

    def check(self, subject: Subject) -> None:
        """Check one dataset whose inputs are checked already, and learn its schema."""
        name, folded = subject.name, subject.name.lower()
        self.schemas[folded], self.vocabs[folded] = None, Vocabulary()
        try:
            state = None if subject.fresh else self.states.get(folded)
            vocab = _vocabulary(subject.events, self.states.get(folded))
            committed = schema_of(state.schema) if state and state.schema else None
            self.vocabs[folded], self.schemas[folded] = vocab, committed
            found = self._result(subject, vocab)
            if found is not None:
                new = dataset_schema(found, vocab)
                self.schemas[folded] = new if committed is None else _settled(name, new, committed)
        except Errors as error:
            self.errors[name] = together(error.errors)
        except OdfbuildError as error:
            self.errors[name] = error
        except Exception as error:  # a defect of ours must not take the other datasets down
            folder = self.known.folder
            self.errors[name] = unforeseen(error, folder, f"checking '{name}'", name)
        if name in self.errors:
            self.schemas[folded] = None  # its readers cannot be told anything

    def _result(self, subject: Subject, vocab: Vocabulary) -> pa.Schema | None:
        """Data and event time columns of the result; `None` when only data can tell."""
        for event in subject.events:
            if isinstance(event, SetTransform):
                return self._of_transform(subject.name, event, vocab)
            if isinstance(event, SetPollingSource | AddPushSource):
                found = self._of_source(subject.name, event, vocab)
                committed = self.schemas[subject.name.lower()]
                if found is None or committed is None:
                    return found
                # New optional columns join; what else a source brings is decided when it comes.
                new = from_pyarrow(dataset_schema(found, vocab))
                growth = grow(from_pyarrow(committed), new)
                self.schemas[subject.name.lower()] = to_pyarrow(growth.schema)
                return None
        state = self.states.get(subject.name.lower())
        if state is not None and state.transform is not None:
            return self._of_transform(subject.name, state.transform, vocab)
        return None

    def _of_transform(self, name: str, event: SetTransform, vocab: Vocabulary) -> pa.Schema | None:
        sources = []
        aliases = [each.alias or str(each.dataset_ref) for each in event.inputs]
        for alias, declared in zip(aliases, event.inputs, strict=True):
            schema, its_vocab = self._input(declared.dataset_ref)
            if schema is None:
                self._screen(name, event.transform, aliases)
                return None
            sources.append(InputSlices(alias=alias, schema=schema, vocab=its_vocab))
        self.inputs[name] = tuple(sources)
        return self._ask(name, event.transform, sources, vocab, preprocess=False)

    def _input(self, ref: DatasetRef) -> tuple[pa.Schema | None, Vocabulary]:
        folded = self.names.get(ref, "") if isinstance(ref, DatasetId) else ref.folded
        if folded in self.schemas:
            return self.schemas[folded], self.vocabs[folded]
        state = self.states.get(folded)
        if state is None or state.schema is None:
            return None, Vocabulary()
        return schema_of(state.schema), vocabulary_of(state.vocab)

    def _of_source(
        self, name: str, event: SetPollingSource | AddPushSource, vocab: Vocabulary
    ) -> pa.Schema | None:
        columns = declared_columns(event.read)
        if columns is None:
            if event.preprocess is not None:
                self._screen(name, event.preprocess, ["input"])
            return None
        if event.preprocess is not None:
            given = InputSlices(alias="input", schema=columns, vocab=vocab)
            columns = self._ask(name, event.preprocess, [given], vocab, preprocess=True)
            if columns is None:
                return None
        if vocab.event_time not in columns.names:
            columns = columns.append(pa.field(vocab.event_time, _MILLIS_UTC))
        return columns

    def _screen(self, name: str, query: TransformSql, inputs: Sequence[str]) -> None:
        """Check what can be told before the data come; the rest stays unknown."""
        self.unknown.add(name)
        key = hashlib.sha256(repr(("screened", query, tuple(inputs))).encode()).digest()
        if self.known.get(key) is None:
            self.get_engine().run(ScreenTask(dataset=name, transform=query, inputs=tuple(inputs)))
            self.known.put(key, pa.schema([]))

    def _ask(
        self,
        name: str,
        query: TransformSql,
        inputs: Sequence[InputSlices],
        vocab: Vocabulary,
        *,
        preprocess: bool,
    ) -> pa.Schema | None:
        computed_by = release_for(query, "", self.engines)
        key = _key(query, inputs, vocab, preprocess, computed_by)
        found = self.known.get(key)
        if found is None:
            task = ValidateTask(
                dataset=name,
                transform=query,
                inputs=tuple(inputs),
                vocab=vocab,
                preprocess=preprocess,
            )
            found = self.get_engine().run(task)
            if found is None:
                self.unknown.add(name)
                return None
            self.known.put(key, found)
        self.right.append(name)
        return found


def _settled(name: str, new: pa.Schema, committed: pa.Schema) -> pa.Schema:
    """The schema in which new records will be; `QueryError` when history forbids it."""
    before = from_pyarrow(committed)
    growth = grow(before, required_as(from_pyarrow(new), before))
    if growth.problems:
        raise QueryError(
            f"the result no longer has the schema that '{name}' is committed with",
            code="E0521",
            dataset=name,
            notes=growth.problems,
            help=f"cast or rename the columns back, or define a new dataset, '{name}.v2'",
        )
    return to_pyarrow(growth.schema)


def _vocabulary(events: Iterable[MetadataEvent], state: Projection | None) -> Vocabulary:
    for event in events:
        if isinstance(event, SetVocab):
            return vocabulary_of(event)
    return vocabulary_of(state.vocab if state else None)


def _key(
    query: TransformSql,
    inputs: Sequence[InputSlices],
    vocab: Vocabulary,
    preprocess: bool,
    computed_by: str = "",
) -> bytes:
    """A digest of all that the answer depends on, but for the built-in engine."""
    parts: list[Any] = [repr(query), repr(vocab), preprocess, computed_by]
    # As bytes, which are never cut and hold what a text of a schema may leave out.
    parts += [
        (each.alias, repr(each.vocab), each.schema.serialize().to_pybytes()) for each in inputs
    ]
    return hashlib.sha256(repr(parts).encode()).digest()
