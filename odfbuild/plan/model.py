"""The plan: a frozen value that says what will be appended, what will run, why and how much.

`apply` consumes it, `report` prints it; neither decides anything again.
"""

from __future__ import annotations

from enum import Enum

from odfbuild.displayed import TEXT, Displayed
from odfbuild.errors import Location, OdfbuildError
from odfbuild.odf.chain.projection import QueryEra
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, DatasetSnapshot, MetadataEvent, SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.branch import InBranch
from odfbuild.plan.drift import ChainDrift
from odfbuild.plan.retention import DueWithdrawal
from odfbuild.plan.tables import CERTAIN, TablePlan
from odfbuild.plan.ways import Computation, Way
from odfbuild.plan.windows import WindowRecords
from odfbuild.project.model import Definition
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.lineage import Influence
from odfbuild.sql.mode import BY_CHECKPOINT, Choice
from odfbuild.values import Value


class Action(Enum):
    """What apply will do with a dataset; the value is the glyph in reports."""

    PROMOTE = "=>"
    CREATE = "+"
    REBUILD = "-/+"
    RENAME = "->"
    APPEND = "~"
    RUN = ">"
    POLL = "?"
    FORGET = "."
    DELETE = "-"
    REFUSE = "!"

    # Each member is there once; that of `Enum` is written in Python and hashes the name.
    __hash__ = object.__hash__


class ReasonCode(Enum):
    """Why a dataset is or is not run or changed: a closed list, part of the output format."""

    NEW = "new"
    NEVER_RUN = "never_run"
    RENAMED = "renamed"
    SOURCE_CHANGED = "definition_changed.source"
    TRANSFORM_CHANGED = "definition_changed.transform"
    VOCAB_CHANGED = "definition_changed.vocab"
    INFO_CHANGED = "definition_changed.info"
    SCHEMA_CHANGED = "definition_changed.schema"
    COSMETIC = "cosmetic"
    SOURCE_HAS_NEWS = "source_has_news"
    SOURCE_UNCHANGED = "source_unchanged"
    SOURCE_NOT_CHECKED = "source_not_checked"
    SOURCE_NOT_ANSWERED = "source_not_answered"
    WATERMARK_DUE = "watermark_due"
    INPUT_ADDED = "input_added"
    INPUT_REMOVED = "input_removed"
    INPUT_ADVANCED = "input_advanced"
    INPUT_REWRITTEN = "input_rewritten"
    INPUT_HAS_NO_DATA = "input_has_no_data"
    INPUT_REFUSED = "input_refused"
    SOURCE_MISSING = "source_missing"
    UPSTREAM_PLANNED = "upstream_planned"
    UP_TO_DATE = "up_to_date"
    NO_DEFINITION = "no_definition"
    PINNED = "pinned"
    NOT_PULLED = "not_pulled"
    STILL_READ = "still_read"
    LOOKS_RENAMED = "looks_renamed"
    BREAKING = "breaking"
    REBUILD = "rebuild"
    DELETE = "delete"
    CORRECT = "correct"
    QUERY_WAITS = "query_waits"
    RECORDS_STAY = "records_stay"
    ENGINE_CHANGED = "engine_changed"
    SOURCE_REFUSED = "source_refused"
    FAULTY = "faulty"
    POLICY_ADDITIVE = "policy.additive"
    POLICY_FORWARD_ONLY = "policy.forward-only"
    POLICY_LIMIT = "policy.limit"
    HEAD_UNMOVED = "head_unmoved"
    HEAD_MOVED = "head_moved"
    BRANCH_ONLY = "branch_only"
    REBUILT_IN_BRANCH = "rebuilt_in_branch"
    INPUT_REPLAYED = "input_replayed"
    ALREADY_PROMOTED = "already_promoted"
    PROMOTION_REFUSED = "promotion_refused"


class Reason(Value, kw_only=True):
    """A reason with its evidence: the input concerned, blocks and offsets, and what caused it."""

    code: ReasonCode
    message: str
    input: str | None = None
    from_block: Multihash | None = None
    from_offset: int | None = None
    to_block: Multihash | None = None
    to_offset: int | None = None
    children: tuple[Reason, ...] = ()


class Pending(Value, kw_only=True):
    """How much is waiting. `None`: cannot be known before the run.

    `records` are new ones. `exact` is false where they are what a source holds, and a merge may
    keep fewer; `compared` where they are compared with the last state, of which most may be no
    news. `read_least` to `read_most` are read, new or not, each counted once, in
    `read_bytes`, where these are known and more than `bytes`. `computation` says how a step in mode
    `changelog` is computed that may need fewer records than there are.
    """

    records: int | None
    bytes: int | None
    exact: bool = True
    read_least: int = 0
    read_most: int | None = None
    files: tuple[str, ...] = ()
    compared: bool = False
    read_bytes: int | None = None
    computation: Computation | None = None


class EventChange(Value, kw_only=True):
    """An event that will be appended, and the committed one of the same kind, if any.

    Inputs without a chain yet stand in `after` by alias; apply resolves them when they exist.
    `location` is where the definition says so, as exactly as it was looked up.
    """

    before: MetadataEvent | None
    after: MetadataEvent
    location: Location | None = None


class ColumnCause(Value, kw_only=True):
    """Why a `column` of a dataset (`None`: its records) is affected: by what of which input."""

    column: str | None
    by: Influence
    input: str
    input_column: str | None = None


class ColumnEffect(Value, kw_only=True):
    """What a change, in the dataset itself or upstream, does to the columns of new records.

    `added` columns join the schema, `changed` ones are computed or read in another way; `records`
    tells that other records may come, too. When not `known`, only the run can tell. `causes` are
    those of what comes from inputs.
    """

    known: bool = True
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    records: bool = False
    causes: tuple[ColumnCause, ...] = ()


class Promoted(Value, kw_only=True):
    """What a promotion does with a dataset whose newest block in the branch is `branch`.

    The head moves to it, by so many `blocks` and `records`. When it `replays`, the branch first
    continues from `onto` instead (`None`: from its seed).
    """

    branch: Multihash
    blocks: int = 0
    records: int = 0
    replays: bool = False
    onto: Multihash | None = None


class DatasetPlan(Value, kw_only=True):
    """What will happen to one dataset. `expected_head` is the head the plan was made against.

    `actions` stand in the order in which apply does them. When a changed query is appended, `eras`
    say which query made the records that stay (`records_under_old_query`); one that is kept as a
    changelog rather corrects what there is (`records_to_correct` at most). A refused dataset has a
    `refusal`, no `changes`, and is not touched. `renamed_from` is the name under which the chain
    lies now, where it is not `name`. `planned_mode` is how a transformation that runs is carried
    out, where that does not follow from its `definition`. Its checks refer to the datasets
    `checked_against`, for which it waits. `promoted` is there in the plan of a promotion.
    """

    name: str
    kind: DatasetKind
    id: DatasetId | None
    expected_head: Multihash | None
    actions: tuple[Action, ...]
    reasons: tuple[Reason, ...]
    changes: tuple[EventChange, ...] = ()
    pending: Pending | None = None
    records_under_old_query: int | None = None
    records_to_correct: int | None = None
    eras: tuple[QueryEra, ...] = ()
    columns: ColumnEffect | None = None
    planned_mode: Choice | None = None
    definition: Definition | None = None
    inputs: tuple[str, ...] = ()
    checked_against: tuple[str, ...] = ()
    location: Location | None = None
    refusal: OdfbuildError | None = None
    renamed_from: str | None = None
    promoted: Promoted | None = None

    @property
    def snapshot(self) -> DatasetSnapshot | None:
        """What the definition says."""
        return None if self.definition is None else self.definition.snapshot

    @property
    def mode(self) -> Choice | None:
        """How the transformation is expected to be carried out; `None` when there is none to do.

        Found when somebody looks: of ten thousand datasets few are shown.
        """
        # What has no inputs has no transformation, so that its definition need not be looked at.
        if self.planned_mode is not None or not self.inputs or Action.RUN not in self.actions:
            return self.planned_mode
        events = self.snapshot.metadata if self.snapshot else ()
        found = next((each for each in events if isinstance(each, SetTransform)), None)
        return None if found is None else expected_mode(found.transform)

    @property
    def query_waits(self) -> bool:
        """Whether nothing happens, and its records follow an earlier query than the present one."""
        return not self.actions and any(r.code is ReasonCode.QUERY_WAITS for r in self.reasons)


class PinnedDataset(Value, kw_only=True):
    """A dataset of others at the block that the project goes by; only `pull` moves it.

    `reference` says where it comes from. Without a `head` nobody pulled it yet.
    """

    name: str
    reference: str
    id: DatasetId | None = None
    head: Multihash | None = None
    blocks: int = 0
    records: int = 0
    watermark: Timestamp | None = None


class News(Value, kw_only=True):
    """What a pull of a dataset of others would bring, when a repository was asked.

    `head` is the one there; `error` is why there is no answer, or why a pull would be refused.
    """

    dataset: str
    head: Multihash | None = None
    blocks: int = 0
    records: int = 0
    error: OdfbuildError | None = None


class Publication(Value, kw_only=True):
    """A dataset that apply pushes to a repository after its commits."""

    dataset: str
    repository: str


class Plan(Value, Displayed, kw_only=True):
    """What apply will do: datasets in an order in which inputs come first.

    `complete` is false when only some datasets were selected. `env` names the environment whose
    variables the definitions were rendered with, `pins` are heads of inputs that are no datasets
    of the plan. `drift` is what can be told of it without looking for it, `windows` what data that
    is here tells of records and windows. `external` are the datasets of others, `news`
    what repositories said of them if they were asked, `publications` what is pushed afterwards.
    `tables` are those that apply publishes or looks at, `rewrites` names of those that it may write
    anew although somebody else changed them.
    `promotes` is the branch whose datasets the heads move to, in the plan of a promotion.
    `branch` is the branch that the plan is made in, if any. `retention` is what is older than it is
    kept, which apply withdraws where that is allowed by name.
    """

    project: str
    datasets: tuple[DatasetPlan, ...]
    complete: bool = True
    env: str | None = None
    pins: tuple[tuple[str, Multihash | None], ...] = ()
    drift: tuple[ChainDrift, ...] = ()
    windows: tuple[WindowRecords, ...] = ()
    external: tuple[PinnedDataset, ...] = ()
    news: tuple[News, ...] | None = None
    publications: tuple[Publication, ...] = ()
    tables: tuple[TablePlan, ...] = ()
    rewrites: tuple[str, ...] = ()
    promotes: str | None = None
    branch: InBranch | None = None
    retention: tuple[DueWithdrawal, ...] = ()

    def __repr__(self) -> str:
        form = TEXT.get(Plan.__name__)
        return f"Plan({', '.join(self.names)})" if form is None else form(self)

    @property
    def names(self) -> list[str]:
        """Names of all datasets, also of those that belong to others."""
        return [*(each.name for each in self.datasets), *(each.name for each in self.external)]

    def called(self, reference: str) -> str | None:
        """The dataset that is meant by a DID, with or without a repository, or by a reference."""
        _, found, did = reference.lower().rpartition("did:")
        if found:
            names = {str(each.id): each.name for each in self.datasets}
            names |= {str(each.id): each.name for each in self.external}
            return names.get(f"did:{did}")
        for each in self.external:
            if each.reference.lower() == reference.lower():
                return each.name
        return None

    @property
    def applyable(self) -> bool:
        """Whether nothing is refused."""
        return not self.refusals

    @property
    def refusals(self) -> list[OdfbuildError]:
        """Why datasets and tables are not touched."""
        found = (
            *(each.refusal for each in self.datasets),
            *(each.refusal for each in self.tables),
            *(each.refusal for each in self.retention if each.allowed),
        )
        return [refusal for refusal in found if refusal is not None]

    @property
    def has_changes(self) -> bool:
        """Whether apply has anything to do; polling what may be unchanged does not count."""
        idle = {Action.POLL, Action.FORGET}
        return (
            any(set(dataset.actions) - idle for dataset in self.datasets)
            or any(table.step in CERTAIN for table in self.tables)
            or any(each.happens for each in self.retention)
        )

    @property
    def waiting_bytes(self) -> int:
        """Bytes of input that are known to wait, of all datasets."""
        return sum(dataset.pending.bytes or 0 for dataset in self.datasets if dataset.pending)

    def count(self, action: Action) -> int:
        """Number of datasets with that action."""
        return sum(action in dataset.actions for dataset in self.datasets)


def drops_history(item: DatasetPlan) -> bool:
    """Whether a history that there is will be no longer that of the head."""
    rebuilt = any(each.code is ReasonCode.REBUILT_IN_BRANCH for each in item.reasons)
    return rebuilt or bool({Action.DELETE, Action.REBUILD} & {*item.actions})


def replays(item: DatasetPlan) -> bool:
    """Whether a promotion lets the branch of a dataset continue from another block."""
    return item.promoted is not None and item.promoted.replays


def takes_engine(item: DatasetPlan) -> bool:
    """Whether it is certain to need Spark; a watermark can move by the clock alone."""
    if item.mode == BY_CHECKPOINT or (item.kind is DatasetKind.Root and item.inputs):
        return False  # a program elsewhere computes it, or it is a portal
    pending = item.pending
    idle = item.kind is DatasetKind.Root and pending is not None and pending.records == 0
    way = pending.computation if pending is not None else None
    idle |= way is not None and way.way is Way.NONE
    return Action.RUN in item.actions and not idle
