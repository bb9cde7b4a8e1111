"""`Dataset`: the records of a dataset, as whoever looks at data wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from odfbuild.api.times import Time, timestamp
from odfbuild.errors import RecordsError, missing_extra
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.records.pin import Pin

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    import pyarrow.compute as pc

    from odfbuild.engine.contract import EngineFactory
    from odfbuild.inspect.verify.provenance import TracedRecords
    from odfbuild.project.model import Config
    from odfbuild.records.records import Records
    from odfbuild.store.workspace import Workspace

PIN = b"odfbuild.pin"
"""Under this key, the metadata of every Arrow schema has the citation."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Records of a dataset, read without Spark: nothing is read before it is asked for.

    `Project()["name"]` gives the current state, with retractions and corrections applied; its
    `history` gives all records with the system columns. `select`, `filter` and `limit` narrow what
    is read; `to_arrow`, `batches`, `to_pandas`, `to_polars` and `to_duckdb` read it. Libraries that
    take Arrow streams, such as polars, DuckDB or pandas, take a `Dataset` itself.

    >>> derived = project["derived"]
    >>> derived.columns, derived.count()
    (['event_time', 'id', 'value'], 3)
    >>> derived.select("value").head(2).to_pylist()
    [{'value': 10}, {'value': 20}]
    """

    _config: Config
    _workspace: Workspace
    _records: Records
    _start_engine: EngineFactory
    _columns: tuple[str, ...] | None = None
    _condition: pc.Expression | None = None
    _rows: int | None = None

    def __repr__(self) -> str:
        columns = "".join(f"\n  {field.name}: {field.type}" for field in self.schema)
        return f"{self.pin}{columns}"

    def _repr_html_(self) -> str:
        from odfbuild.report.notebook import dataset_html

        return dataset_html(str(self.pin), self.schema, self.head(), self.count())

    # --- What it is ---

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.pin.dataset

    @property
    def pin(self) -> Pin:
        """What is read, exactly: identity, block, offsets. As text, it is a citation.

        >>> str(project["derived"].pin).split(", ")[-2:]
        ['records 0 to 2', 'current state']
        """
        return self._records.pin

    @property
    def schema(self) -> pa.Schema:
        """The schema of what is read; its metadata have the citation as `odfbuild.pin`."""
        import pyarrow as pa

        whole = self._records.schema
        fields = [whole.field(name) for name in self._records.known(self._columns)]
        return pa.schema(fields, {**(whole.metadata or {}), PIN: str(self.pin).encode()})

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._records.known(self._columns)

    def count(self) -> int:
        """How many records there are; reads no file where the chain tells."""
        found = self._records.count(self._condition)
        return found if self._rows is None else min(found, self._rows)

    # --- Which part of it ---

    @property
    def history(self) -> Dataset:
        """All records in the order of the chain, retractions too, with the system columns."""
        return replace(self, _records=self._records.history())

    def at(self, moment: Time | Pin) -> Dataset:
        """The dataset at an earlier moment.

        That is a time (a `datetime` with a time zone, or text), a date (midnight UTC), a block (its
        hash, or the beginning or end of it), a revision of Git (a tag, a branch, a commit), or a
        pin. Raises `RecordsError` E1205 where the dataset did not exist then.
        """
        from odfbuild.records.records import records_of
        from odfbuild.survey.moments import state_at, state_at_block

        if isinstance(moment, Pin):
            state = state_at_block(self._workspace, self.name, self._block_of(moment))
        else:
            at = moment if isinstance(moment, str) else timestamp(moment, "moment")
            state = state_at(self._config, self._workspace, self.name, at)
        view = self.pin.view
        return replace(self, _records=records_of(self._workspace, self.name, state, view=view))

    def changes(self, since: Pin | str) -> Dataset:
        """The records that came after a pin or a block, as history: what to apply to a copy.

        `op` tells appended records (0) from retracted (1) and corrected ones (2 before, 3 after).
        Raises `PlanError` E0332 where the block is not part of the chain any more.
        """
        from odfbuild.records.records import records_of
        from odfbuild.survey.moments import state_at_block

        block = self._block_of(since) if isinstance(since, Pin) else since
        before = state_at_block(self._workspace, self.name, block)
        now = self._records.stored.state
        records = records_of(self._workspace, self.name, now, view="history", since=before)
        return replace(self, _records=records)

    def select(self, *columns: str) -> Dataset:
        """Only these columns, in this order; `RecordsError` E1201 for one that is not there."""
        self._records.known(columns)
        return replace(self, _columns=columns)

    def filter(self, condition: pc.Expression) -> Dataset:
        """Only records that fulfil a condition, such as `pyarrow.compute.field("value") > 10`.

        It may use columns that are not selected. Several filters all count. Conditions are
        expressions of PyArrow, not text: they are checked against the columns at once
        (`RecordsError` E1202), and mean the same wherever records go.

        >>> import pyarrow.compute as pc
        >>> project["derived"].filter(pc.field("value") > 10).count()
        2
        """
        self._records.check(condition)
        both = condition if self._condition is None else self._condition & condition
        return replace(self, _condition=both)

    def limit(self, rows: int) -> Dataset:
        """Only the first `rows` records in the order of the chain."""
        if rows < 0:
            raise ValueError("a limit is 0 or more")
        return replace(self, _rows=rows if self._rows is None else min(rows, self._rows))

    # --- Reading it ---

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records as Arrow batches; holds a few of them in memory, however many there are."""
        schema = self.schema
        for batch in self._records.batches(self.columns, self._condition, self._rows):
            yield batch.replace_schema_metadata(schema.metadata)

    def to_arrow(self) -> pa.Table:
        """All records as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), self.schema)

    def head(self, rows: int = 10) -> pa.Table:
        """The first records as an Arrow table; reads no more than they need."""
        return self.limit(rows).to_arrow()

    def tail(self, rows: int = 10) -> pa.Table:
        """The last records as an Arrow table; reads no more than they need."""
        if self._rows is not None:
            whole = self.to_arrow()
            return whole.slice(max(0, whole.num_rows - rows))
        found = self._records.last(rows, self.columns, self._condition)
        return found.replace_schema_metadata(self.schema.metadata)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The records as a stream that other libraries read (Arrow PyCapsule interface)."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All records as a data frame of pandas; `attrs["odfbuild.pin"]` is the citation."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise missing_extra("pandas", "data frames of pandas") from None
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        frame.attrs[PIN.decode()] = str(self.pin)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """All records as a data frame of polars."""
        try:
            import polars
        except ModuleNotFoundError:
            raise missing_extra("polars", "data frames of polars") from None
        return polars.DataFrame(self.to_arrow())

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The records as a relation of DuckDB, in `connection` or one of its own.

        It is also a view there with the name of the dataset. DuckDB reads the files itself, what
        its query needs of them; with a filter or a limit, the records are held in memory.
        """
        from odfbuild.records.duckdb_views import connect, quote

        made = connection or connect()
        if self._condition is not None or self._rows is not None:
            made.register(self.name, self.to_arrow())
            return made.table(quote(self.name))
        self._records.duckdb_view(made, self.name, lasting=True)
        return made.sql(f"SELECT {', '.join(map(quote, self.columns))} FROM {quote(self.name)}")

    def provenance(
        self, record: int | Mapping[str, Any], *, recursive: bool = True, columns: bool = False
    ) -> TracedRecords:
        """Where a record comes from: the records of its inputs, `recursive` down to the files.

        With `columns`, also which columns of the inputs its columns are made of.
        `record` is its offset, or a row such as `to_arrow().to_pylist()` gives; of several equal
        records, the newest is traced. Starts Spark, which recomputes the step that made it. Raises
        `RecordsError` E1248 for a row that is not there.
        """
        from odfbuild.extras import require_engine
        from odfbuild.inspect.provenance import trace
        from odfbuild.inspect.verify.provenance import Extent

        require_engine("`provenance()`")
        offset = record if isinstance(record, int) else self._offset_of(record)
        extent = Extent(recursive=recursive, columns=columns)
        trees, _ = trace(self._workspace, self.name, [offset], self._start_engine, extent)
        return trees[0]

    def _offset_of(self, row: Mapping[str, Any]) -> int:
        """The offset of the newest record that was appended with these values."""
        import pyarrow.compute as pc

        history = self.history
        vocab = self._records.stored.vocab
        if vocab.offset in row:
            return int(row[vocab.offset])
        condition = pc.field(vocab.operation_type).isin([APPEND, CORRECT_TO])
        for name, value in row.items():
            # Nested values cannot be compared; the others tell most records apart.
            if not isinstance(value, list | dict):
                same = pc.field(name).is_null() if value is None else pc.field(name) == value
                condition &= same
        found = history.filter(condition).select(vocab.offset).to_arrow()[vocab.offset]
        if not len(found):
            raise RecordsError(
                f"'{self.name}' has no record with these values",
                code="E1248",
                dataset=self.name,
                help="give a row as `to_arrow().to_pylist()` has it, or an offset of `history`",
            )
        return int(found[-1].as_py())

    def _block_of(self, pin: Pin) -> str:
        if pin.dataset_id != self.pin.dataset_id:
            raise RecordsError(
                f"the pin is of '{pin.dataset}', not of '{self.name}'",
                code="E1204",
                dataset=self.name,
                notes=(str(pin),),
                help="give a pin of the same dataset",
            )
        return str(pin.block)
