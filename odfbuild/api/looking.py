"""Methods that read definitions, committed states and plans; they change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from odfbuild.api.base import Base
from odfbuild.api.times import Time, moment, timestamp
from odfbuild.errors import together
from odfbuild.extras import needs_engine
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.graph.selection import Selection
from odfbuild.plan.model import Plan
from odfbuild.store.branches import Limit
from odfbuild.survey.names import existing

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.api.dataset import Dataset
    from odfbuild.exchange.repositories.listing import ListedDataset
    from odfbuild.inspect.ages import DatasetAge
    from odfbuild.inspect.ask import QueryOptions
    from odfbuild.inspect.corrections import Corrections
    from odfbuild.inspect.data_diff.model import Comparison
    from odfbuild.inspect.drift import Drifted
    from odfbuild.inspect.late import Late
    from odfbuild.inspect.proof import VerifiedProof
    from odfbuild.inspect.status import ProjectStatus
    from odfbuild.inspect.tables import TableFacts
    from odfbuild.inspect.verify.provenance import TracedRecords
    from odfbuild.inspect.vintage import Vintage
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.model import DatasetSnapshot, MetadataBlock
    from odfbuild.odf.multihash import Multihash
    from odfbuild.plan.changes.definitions import DefinitionChange
    from odfbuild.plan.explain import Explanation
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.project.lint.finding import Finding
    from odfbuild.survey.blame import BlamedBlock


class Looking(Base):
    """What a project is, and what `apply` would do."""

    def _repr_html_(self) -> str:
        from odfbuild.report.notebook import project_html
        from odfbuild.survey.definitions import look_at_definitions

        found = look_at_definitions(self._folder, self._given)
        return project_html(found.project.config.name, found.projections, found.graph)

    def definitions(self) -> dict[str, DatasetSnapshot]:
        """All definitions by name, templates rendered; raises `Errors` with all that is wrong."""
        from odfbuild.survey.definitions import read_definitions

        found = read_definitions(self._folder, self._given)
        return {each.name: each.snapshot for each in found.project.definitions}

    def graph(self) -> Graph:
        """Which datasets derive from which; raises `Errors` as `definitions`.

        `graph().dag` is a `networkx.DiGraph`. Its nodes have the attributes `definition` and
        `state`: what is defined, and what the chain says; `None` where there is no such thing.

        >>> dag = project.graph().dag
        >>> sorted(networkx.descendants(dag, "root"))
        ['derived']
        """
        from odfbuild.survey.definitions import read_definitions

        found = read_definitions(self._folder, self._given)
        for name, attributes in found.graph.dag.nodes.items():
            attributes["state"] = found.projections.get(name)
        return found.graph

    def datasets(
        self, select: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> dict[str, Projection]:
        """The committed state of datasets that have a chain: records, watermark, head and more."""
        if not select and not exclude:
            return dict(self.workspace().projections())
        from odfbuild.survey.survey import choose

        selection = Selection(select=tuple(select), exclude=tuple(exclude))
        names, found = choose(self._folder, selection, self._given)
        return {name: each for name, each in found.projections.items() if name in names}

    def live_records(self) -> dict[str, int | None]:
        """How many records the current state of each dataset has, by name; `None`: not known.

        `datasets()` counts all records of the history. What is not known takes data files that are
        not on this machine to tell, or PyArrow.

        >>> project.live_records()
        {'derived': 3, 'root': 3}
        """
        from odfbuild.records.live import live_records

        workspace = self.workspace()
        newest = self._given.branch is None
        return live_records(workspace, workspace.projections(), newest=newest)

    def heads(self) -> dict[str, str]:
        """The newest block of every dataset, by name, as all of them were at one moment.

        While a promotion moves heads, these are the old ones; after it, all the new ones.

        >>> sorted(project.heads())
        ['derived', 'root']
        """
        from odfbuild.store.moving_heads import consistent_heads

        found = consistent_heads(self.workspace())
        return {name: found[name].decode("ascii", "replace") for name in sorted(found)}

    def __getitem__(self, name: str) -> Dataset:
        """The records of a dataset, read without Spark; `PlanError` E0301 when there is none.

        >>> project["derived"].count()
        3
        """
        from odfbuild.api.dataset import Dataset
        from odfbuild.extras import require_pyarrow

        require_pyarrow("records")
        from odfbuild.records.records import records_of

        workspace, name = self._existing(name)
        records = records_of(workspace, name)
        return Dataset(self.config(), workspace, records, self._start_engine)

    def __contains__(self, name: object) -> bool:
        """Whether `project[name]` has records.

        >>> "derived" in project
        True
        """
        return name in self.workspace().readable()

    def __iter__(self) -> Iterator[str]:
        """The names of all datasets that have a chain.

        >>> list(project)
        ['derived', 'root']
        """
        return iter(sorted(self.workspace().readable()))

    def status(self) -> ProjectStatus:
        """What is stale, changed or locked, and what failed in the last run."""
        from odfbuild.inspect.status import project_status

        return project_status(self._survey())

    def freshness(self, at: Time | None = None) -> list[DatasetAge]:
        """How old datasets are by their watermarks at a time (default: now), and may be.

        A dataset whose chain is damaged has the status `damaged`, and an `error` that tells why.
        """
        from odfbuild.inspect.ages import ages_of

        now = Timestamp.now() if at is None else timestamp(at, "at")
        return ages_of(self._folder, self._given, self.workspace(), self.config().freshness, now)

    @needs_engine
    def late(self, dataset: str) -> Late:
        """Records that came too late: for windows of a dataset, or behind its own watermark."""
        from odfbuild.inspect.late import late

        workspace, name = self._existing(dataset)
        return late(workspace, name, workspace.projections()[name])

    def log(self, dataset: str) -> Iterator[tuple[Multihash, MetadataBlock]]:
        """Blocks of a chain with their hashes, newest first."""
        workspace, name = self._existing(dataset)
        store = workspace.dataset(name)
        head = store.head()
        return iter(()) if head is None else store.walk(head)

    def blame(self, dataset: str) -> list[BlamedBlock]:
        """Which commit of Git brought each block of a dataset, newest block first."""
        from odfbuild.survey.blame import blame

        workspace, name = self._existing(dataset)
        return blame(self.config(), workspace.dataset(name))

    @needs_engine
    def records(self, dataset: str, last: int | None = None) -> pa.Table | None:
        """The last records of a dataset, or all, in order of offset; `None`: there are none.

        Retractions and corrections are records, too: the column `op` tells them apart.

        >>> project.records("derived", last=2)["value"].to_pylist()
        [20, 30]
        """
        from odfbuild.records.records import newest_records

        workspace, name = self._existing(dataset)
        return newest_records(workspace, name, workspace.projection(name), last)

    def sql(
        self,
        query: str,
        *,
        history: bool = False,
        limit: int | None = None,
        as_of: Time | None = None,
        valid_at: Time | None = None,
        engine: Literal["spark", "duckdb"] | None = None,
    ) -> pa.Table:
        """Ask committed datasets, which are tables by their names, in SQL.

        They show what they say now, or what was committed at `as_of`: a system time, a date or a
        block; what is true now, or was at the event time `valid_at`; with `history` all records,
        with the system columns. `engine` decides the dialect (default: as odfbuild.yaml says, or
        Spark); DuckDB needs no Java, and is named in the metadata of the table's schema, as
        `odfbuild.engine`. Raises `QueryError` or, of DuckDB, `RecordsError`; several as `Errors`.
        """
        from odfbuild.engine.settings import AnsweredBy
        from odfbuild.extras import require_engine, require_pyarrow

        if history and valid_at is not None:
            raise ValueError("history shows all records, whatever was true")
        config = self.config()
        by = AnsweredBy(engine or config.engine.questions)
        require_pyarrow("questions") if by is AnsweredBy.DUCKDB else require_engine("`sql()`")
        from odfbuild.inspect.ask import answered, at_heads, at_moment, understand
        from odfbuild.inspect.ask_duckdb import answered_by_duckdb
        from odfbuild.project.tables import declared_tables
        from odfbuild.report.records.answer import read_answer

        workspace = self.workspace()
        question = understand(query, workspace.aliases(), by.quote)
        if as_of is None:
            sources = at_heads(workspace, question)
        else:
            sources = at_moment(workspace, question, moment(workspace, as_of, "as_of"))
        tables = declared_tables(config, question.datasets)
        options: QueryOptions = {
            "history": history,
            "limit": limit,
            "valid_at": None if valid_at is None else timestamp(valid_at, "valid_at"),
        }
        with (
            answered_by_duckdb(workspace, question, config.engine, sources, tables, **options)
            if by is AnsweredBy.DUCKDB
            else answered(workspace, question, self._start_engine, sources, **options)
        ) as found:
            assert found.schema is not None
            return read_answer(found.parts, found.schema)

    @needs_engine
    def corrections(self, dataset: str, since: Time) -> Corrections:
        """Which records were corrected, retracted or came late since a system time or a block."""
        from odfbuild.inspect.corrections import corrections

        workspace, name = self._existing(dataset)
        return corrections(workspace, name, moment(workspace, since, "since", name))

    @needs_engine
    def provenance(
        self,
        dataset: str,
        records: Sequence[int] | str,
        *,
        recursive: bool = False,
        columns: bool = False,
    ) -> list[TracedRecords]:
        """Which records of its inputs records were made of, `recursive` down to the roots.

        `records` are offsets, or a condition in SQL. With `columns`, each result also has
        `columns`: which columns of which inputs its own are made of.
        """
        from odfbuild.inspect.provenance import trace
        from odfbuild.inspect.verify.provenance import Extent

        workspace, name = self._existing(dataset)
        extent = Extent(recursive=recursive, columns=columns)
        return trace(workspace, name, records, self._start_engine, extent)[0]

    @needs_engine
    def prove(self, query: str, *, history: bool = False) -> dict[str, Any]:
        """Ask like `sql`, and sign the answer: the document that `sql --prove` writes.

        Raises `QueryError`s, also for a query whose rows may be others the next time.
        """
        from odfbuild.inspect.ask import understand
        from odfbuild.inspect.proof import prove

        workspace = self.workspace()
        question = understand(query, workspace.aliases())
        return prove(workspace, question, self._start_engine, history=history)

    @needs_engine
    def check_proof(self, document: Any, *, signer: str | None = None) -> VerifiedProof:
        """Check somebody's proof by asking again, at the blocks that it names.

        With `signer`, a `did:key`, nobody else may have signed. Raises `IntegrityError` when it
        does not hold, `PlanError` when it cannot be told here or is no proof.
        """
        from odfbuild.inspect.proof import check_proof

        return check_proof(self.workspace(), document, self._start_engine, signer=signer)

    def plan(
        self,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        fetch_uncacheable: bool = False,
        rebuild: Sequence[str] = (),
        correct: Sequence[str] = (),
        forward: Sequence[str] = (),
        delete: Sequence[str] = (),
        rewrite: Sequence[str] = (),
        read: Sequence[str] = (),
        withdraw: Sequence[str] = (),
        refresh: bool = False,
        sample: str | None = None,
        since: Time | None = None,
    ) -> Plan:
        """What `apply` would do. Starts no JVM, uses no network, changes nothing.

        `rebuild` names derivatives to compute again, `delete` chains to delete that nothing
        defines any more; with their readers when `+` follows. `correct` names changelogs whose
        records are to follow a changed query now, `forward` datasets whose changed query holds for
        new records only, whatever `onQueryChange` in odfbuild.yaml says, `rewrite` published tables
        to replace although somebody else changed them, `read` datasets that may read more than
        policies let them, `withdraw` datasets whose records go for good once `retain` no longer
        keeps them. With `refresh` web servers are asked whether
        the data that was read of them changed, and repositories what is new of datasets of others,
        for `Plan.news`. In a branch, `sample` (such as `10%`) and
        `since` (an event time) let derivatives read part of their inputs.

        >>> plan = project.plan(select=["root+"])
        >>> plan.has_changes, plan.count(Action.CREATE)
        (True, 2)
        """
        from odfbuild.survey.survey import PlanRequest

        limit = since if since is None or isinstance(since, str) else str(timestamp(since, "since"))
        asked = PlanRequest(
            selection=Selection(select=tuple(select), exclude=tuple(exclude)),
            fetch_uncacheable=fetch_uncacheable,
            refresh=refresh,
            rebuilds=tuple(map(Consent.parse, rebuild)),
            corrections=tuple(map(Consent.parse, correct)),
            deletions=tuple(map(Consent.parse, delete)),
            forward=tuple(map(Consent.parse, forward)),
            rewrites=tuple(rewrite),
            reads=tuple(map(Consent.parse, read)),
            withdrawals=tuple(withdraw),
            of_branch=True,
            limit=Limit.parse(sample, limit),
        )
        return self._survey(asked).plan

    def tables(
        self, select: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> dict[str, TableFacts]:
        """The published tables of datasets, by name: what each holds, and what it lacks.

        Asks the places where the tables are. `lacks` is empty where a table is up to date; `state`
        is `None` where it was not published yet.
        """
        from odfbuild.inspect.tables import look_at
        from odfbuild.project.tables import declared_tables

        config, workspace = self.config(), self._on_heads("tables")
        names = self.datasets(select, exclude) if select or exclude else workspace.aliases()
        found = declared_tables(config, names)
        return {each.name: look_at(config, workspace, each) for each in found}

    def load_plan(self, file: str | Path) -> Plan:
        """A saved plan; `PlanError` when it is none or was changed."""
        from odfbuild.survey.approved import load_plan

        return load_plan(Path(file)).plan

    def explain(self, dataset: str) -> Explanation:
        """Why a dataset is stale or not, down to the root causes.

        >>> project.explain("derived").status.value
        'up to date: nothing will happen'
        """
        from odfbuild.inspect.receipts import with_receipts
        from odfbuild.plan.explain import explain

        found = self._survey()
        names = {each.lower(): each for each in found.plan.names}
        name = names.get((found.plan.called(dataset) or dataset).lower())
        name = name or existing(found.workspace, dataset)
        explanation = explain(found.plan, name, found.projections)
        return with_receipts(explanation, found.project.config, found.workspace, found.renames)

    def lint(self, *datasets: str) -> list[Finding]:
        """Errors and warnings of `odfbuild lint` for these datasets, or all; changes nothing."""
        from odfbuild.api.authoring.linting import lint
        from odfbuild.survey.definitions import look_at_definitions

        found = look_at_definitions(self._folder, self._given)
        if not datasets:
            return lint(found).everything
        from odfbuild.survey.survey import choose

        chosen, _ = choose(self._folder, Selection(select=datasets), self._given)
        return lint(found, chosen).everything

    def diff(self, old: str | None = None, new: str | None = None) -> tuple[DefinitionChange, ...]:
        """How definitions differ from the chains, or between revisions in Git.

        `new` is the revision to compare `old` with (`None`: the files as they are). Raises what is
        wrong with definitions, several as `Errors`.
        """
        from odfbuild.survey.compare import compare_revisions, compare_with_chains

        if old is None:
            found = compare_with_chains(self._folder, self._given)
        else:
            found = compare_revisions(self.config(), old, new)
        if found.faults:
            raise together(found.faults_of(None))
        return found.changes

    def diff_data(
        self,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        since: Time | None = None,
        until: Time | None = None,
        key: Sequence[str] = (),
        limit_bytes: int | None = None,
    ) -> Comparison:
        """How records differ, by key and by column: what `odfbuild diff --data` shows.

        With `since`, the records of then are compared with those of `until` (default: now), both
        system times, dates or blocks. In a branch, those of the branch with those of the head. Else
        what changed queries give, computed over at most `limit_bytes` of input, with what is
        committed.
        """
        from odfbuild.extras import require_pyarrow

        require_pyarrow("differences of records")
        from odfbuild.inspect.data_diff.ask import between_moments, with_branch, with_chains
        from odfbuild.inspect.data_diff.limit import LIMIT_BYTES
        from odfbuild.inspect.data_diff.queries import changed_queries
        from odfbuild.survey.survey import PlanRequest

        if until is not None and since is None:
            raise ValueError("`until` needs `since`")
        config = self.config()
        if since is not None or config.branch is not None:
            workspace = self.workspace()
            names = sorted(self.datasets(select, exclude))
            if since is None:
                return with_branch(config, workspace, names, key)
            only = names[0] if len(names) == 1 else None
            first = moment(workspace, since, "since", only)
            second = None if until is None else moment(workspace, until, "until", only)
            labels = (str(first), str(second or "now"))
            return between_moments(config, workspace, names, (first, second), labels, key)
        selection = Selection(select=tuple(select), exclude=tuple(exclude))
        found = self._survey(PlanRequest(selection=selection))
        limit = LIMIT_BYTES if limit_bytes is None else limit_bytes
        return with_chains(found, changed_queries(found, limit), self._start_engine, key)

    def drift(self, *, deep: bool = False) -> Drifted:
        """What is not as definitions and runs left it; `deep` hashes all objects.

        What is wrong with definitions is in its `faults`.
        """
        from odfbuild.inspect.drift import find_drift

        return find_drift(self._folder, self._given, deep=deep)

    def vintage(self, dataset: str) -> Vintage:
        """What the records of a dataset were made from, at the blocks that were read."""
        from odfbuild.inspect.vintage import vintage

        return vintage(*self._existing(dataset))

    def remote_datasets(self, repository: str) -> list[ListedDataset]:
        """The datasets of a repository, by its name or address, as `odfbuild ls --remote` lists it.

        `RepositoryError` E1015 where the server does not tell what it has.
        """
        from odfbuild.exchange.repositories.open import Remotes

        config = self.config()
        with Remotes(config.root, config.repositories) as remotes:
            return remotes.datasets(repository)
