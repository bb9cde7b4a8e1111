"""A coordinator that acts like the reference: requests for an engine, and what it makes of answers.

It knows nothing of the engine but the protocol: requests are encoded, answers decoded, files looked
at as they lie there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.process.wire import CHANNEL_OPTIONS, EXECUTE_RAW_QUERY, EXECUTE_TRANSFORM
from odfbuild.odf.digest import LogicalHasher
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import TransformSql
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    RawQueryRequest,
    TransformRequest,
    TransformRequestInput,
    TransformResponseSuccess,
    Watermark,
)
from odfbuild.odf.timestamp import Timestamp
from tests.engine.stepwise import Source, rows_of

NOW = Timestamp.parse("2050-01-01T12:00:00.123456789Z")


def id_of(name: str) -> DatasetId:
    """An identity that is the same for every test."""
    return DatasetId(hashlib.sha256(name.encode()).digest())


def head_of(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself."""
    with tarfile.open(checkpoint) as archive:
        return json.loads(archive.extractfile("odfbuild.json").read())


@dataclass
class Line:
    """An engine at an address; each call has a connection of its own, or one that is `kept`."""

    address: str
    seconds: float = 400  # machines are busy
    _channel: Any = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """One connection for all calls inside."""
        with grpc.insecure_channel(self.address, CHANNEL_OPTIONS) as self._channel:
            yield
        self._channel = None

    def call(self, method: Any, request: Any) -> list[Any]:
        """All answers to a request: signs of life, then one that is final."""
        data = method.encode_request(request)
        return [method.decode_response(each) for each in self.bytes(method.path, data)]

    def bytes(self, path: str, data: bytes) -> list[bytes]:
        """All answers to any bytes."""
        with contextlib.ExitStack() as stack:
            channel = self._channel or stack.enter_context(
                grpc.insecure_channel(self.address, CHANNEL_OPTIONS)
            )
            call = channel.unary_stream(path)
            return list(call(data, timeout=self.seconds, wait_for_ready=True))

    def transform(self, request: TransformRequest) -> Any:
        """The final answer; there is exactly one."""
        *before, final = self.call(EXECUTE_TRANSFORM, request)
        assert {each.KIND for each in before} <= {"Progress"}
        assert final.KIND != "Progress"
        return final

    def raw_query(self, request: RawQueryRequest) -> Any:
        """The final answer."""
        *before, final = self.call(EXECUTE_RAW_QUERY, request)
        assert {each.KIND for each in before} <= {"Progress"}
        return final


@dataclass
class Chain:
    """A derivative as a coordinator keeps it: what its blocks say, and its files."""

    line: Line
    folder: Path
    transform: TransformSql
    sources: Sequence[Source]
    vocab: DatasetVocabulary = DatasetVocabulary()  # noqa: RUF009
    done: list[int] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    checkpoint: Path | None = None
    records: int = 0
    watermark: Timestamp | None = None
    answer: Any = None
    schema: pa.Schema | None = None
    steps: int = 0
    asked: Any = None

    def request(self, *upto: int) -> TransformRequest:
        """The next request: inputs up to these numbers of blocks (all without)."""
        last = upto or tuple(len(s.blocks) for s in self.sources)
        done = self.done or [0] * len(self.sources)
        self.steps += 1
        out = self.folder / f"out-{self.steps}"
        out.mkdir(parents=True)
        inputs = zip(self.sources, done, last, strict=True)
        return TransformRequest(
            dataset_id=id_of("derived"),
            dataset_alias=DatasetAlias("derived"),
            system_time=NOW,
            vocab=self.vocab,
            transform=self.transform,
            query_inputs=tuple(self._input(*each) for each in inputs),
            next_offset=self.records,
            prev_checkpoint_path=None if self.checkpoint is None else str(self.checkpoint),
            new_checkpoint_path=str(out / "checkpoint"),
            new_data_path=str(out / "data"),
        )

    def _input(self, source: Source, first: int, last: int) -> TransformRequestInput:
        schema = self.folder / f"schema-{source.alias}"
        if not schema.exists():
            pq.write_table(source.schema.empty_table(), schema)
        blocks = list(enumerate(source.blocks))[first:last]
        files = [each.path for _, (each, _, _) in blocks if each is not None]
        start = source.blocks[first - 1][1] if first else 0
        end = source.blocks[last - 1][1] - 1 if last else -1
        return TransformRequestInput(
            dataset_id=id_of(source.alias),
            dataset_alias=DatasetAlias(source.alias),
            query_alias=source.alias,
            vocab=DatasetVocabulary(),
            offset_interval=OffsetInterval(start=start, end=end) if files else None,
            data_paths=tuple(map(str, files)),
            schema_file=str(schema),
            explicit_watermarks=tuple(
                Watermark(system_time=Timestamp.from_millis(number * 1000), event_time=after)
                for number, (_, _, after) in blocks
                if after is not None
            ),
        )

    def step(self, *upto: int) -> list[tuple[Any, ...]]:
        """Do the next step, and commit what it gives; returns the new records."""
        self.send(*upto)
        return self.take()

    def send(self, *upto: int) -> None:
        """Let the engine do the next step."""
        self.asked = self.request(*upto)
        self.answer = self.line.transform(self.asked)
        assert isinstance(self.answer, TransformResponseSuccess), self.answer
        self.done = list(upto or (len(s.blocks) for s in self.sources))

    def take(self) -> list[tuple[Any, ...]]:
        """Commit what the engine gave; returns the new records."""
        return self.commit(self.asked)

    def commit(self, request: TransformRequest) -> list[tuple[Any, ...]]:
        """Take over what the engine wrote, as the reference does."""
        out = Path(request.new_data_path).parent
        assert sorted(each.name for each in out.iterdir()) == ["checkpoint", "data"]
        assert all(each.is_file() and not each.is_symlink() for each in out.iterdir())
        self.checkpoint = out / "checkpoint"
        table = pq.read_table(out / "data")
        assert self.schema is None or table.schema == self.schema
        self.schema = table.schema
        after = self.answer.new_watermark
        assert self.watermark is None or (after is not None and after >= self.watermark)
        self.watermark = after
        interval = self.answer.new_offset_interval
        if interval is None:
            assert table.num_rows == 0
            return []
        assert interval.start == self.records
        names = [self.vocab.offset_column or "offset", self.vocab.system_time_column]
        expected = list(range(interval.start, interval.end + 1))
        assert table[names[0]].to_pylist() == expected
        times = set(table[names[1] or "system_time"].cast(pa.int64()).to_pylist())
        assert times == {request.system_time.millis}
        self.records = interval.end + 1
        self.files.append(out / "data")
        hasher = LogicalHasher(table.schema)
        for batch in table.combine_chunks().to_batches():
            hasher.update(batch)
        self.hashes.append(str(hasher.finish()))
        return rows_of(table) if self.vocab == DatasetVocabulary() else table.to_pylist()

    def asks(self, *queries: TransformSql, **changes: Any) -> Any:
        """The answer to the next request with changes; nothing is committed."""
        return self.line.transform(replace(self.request(), **changes))
