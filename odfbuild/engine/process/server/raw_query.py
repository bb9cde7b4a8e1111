"""Raw queries: SQL over files that belong to no dataset, as `preprocess` of a source has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import Engine, InputSlices, QueryTask, SliceFile
from odfbuild.engine.process.files import in_steps
from odfbuild.engine.process.server.at_hand import Desk, schema_in, unreadable
from odfbuild.engine.process.server.output import complete
from odfbuild.engine.process.server.problems import malformed
from odfbuild.engine.slice import committed, records_of
from odfbuild.odf.model.messages import RawQueryRequest, RawQueryResponseSuccess
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.translate.runnable import runnable

_INPUT = "input"
_NO_SYSTEM_COLUMNS = Vocabulary(
    *(f"__odf_no_{name}" for name in ("offset", "op", "system", "event"))
)
"""A column `op` of a source is a column like others."""


def answer(engine: Engine, request: RawQueryRequest, desk: Desk) -> RawQueryResponseSuccess:
    """Compute what `request` asks for over the view `input`, and write its file."""
    if not request.input_data_paths:
        raise malformed("a raw query has no input files")
    file = _one_file([Path(each) for each in request.input_data_paths], desk)
    rows = pq.read_metadata(file).num_rows
    view = InputSlices(
        alias=_INPUT,
        schema=schema_in(file),
        vocab=_NO_SYSTEM_COLUMNS,
        slices=(SliceFile(file),) if rows else (),
        first=0 if rows else None,
        last=rows - 1 if rows else None,
    )
    *steps, last = runnable(in_steps(request.transform)).queries or ()
    result = engine.run(
        QueryTask(
            sql=last.query,
            steps=tuple(steps),
            inputs=(view,),
            scratch=desk.scratch,
            history=True,
        )
    )
    if result.schema is None:
        raise AssertionError("the result of a query has a schema")
    schema = committed(result.schema)
    written = 0
    with (
        complete(Path(request.output_data_path)) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="snappy") as writer,
    ):
        for batch in records_of(result, _NO_SYSTEM_COLUMNS):
            writer.write_batch(batch.select(schema.names).cast(schema, safe=False))
            written += batch.num_rows
    return RawQueryResponseSuccess(num_records=written)


def _one_file(files: Sequence[Path], desk: Desk) -> Path:
    """All records in one file, in their order."""
    if len(files) == 1:
        schema_in(files[0])
        return desk.readable(files[0])
    schema = schema_in(files[0])
    whole = desk.another()
    with pq.ParquetWriter(whole, schema) as writer:
        for file in files:
            schema_in(file)
            try:
                with pq.ParquetFile(file) as opened:
                    for batch in opened.iter_batches():
                        writer.write_batch(batch.cast(schema))
            except (OSError, pa.ArrowException) as error:
                raise unreadable(file, error) from None
    return whole
