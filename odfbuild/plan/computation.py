"""How a step in mode `changelog` will be computed, and how many records of its inputs it reads.

Told before the run from the text of the query, from counts in chains and from the columns of the
inputs. The engine decides by its own plan of the query and by the records, and never reads more
than is said here. Source of the rules: `sql.increments`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.expected_input import Amount
from odfbuild.plan.expected_input import total as all_of
from odfbuild.plan.ways import Computation, Way
from odfbuild.sql.forecast import steps_of
from odfbuild.sql.increments.parts import is_long, most_affected
from odfbuild.sql.translate.runnable import is_spark
from odfbuild.values import Value


class Reading(Value):
    """An input: its name in the query, its state, and its new records, those `coming` included.

    `appends`: new records never take an earlier one back. `coming` have no chain yet.
    """

    alias: str
    state: Projection | None
    new: Amount
    coming: Amount
    appends: bool


def computation_of(
    transform: TransformSql,
    projection: Projection | None,
    inputs: Sequence[Reading],
    *,
    continued: bool,
    elsewhere: str = "",
) -> tuple[Computation | None, Amount]:
    """How a step is computed (`None`: over all of few records), and how many records it reads.

    `continued`: the records so far are what the same query gave. `elsewhere` says why a step is
    computed where it always takes all records, if it is.
    """
    new = all_of([each.new for each in inputs])
    before = sum(each.state.records for each in inputs if each.state)
    whole = Amount(before, before) + all_of([each.coming for each in inputs])
    if whole.most is not None and not is_long(whole.most):
        return None, whole
    if projection is None or not projection.ever_ran:
        why = "it is computed for the first time"
        return Computation(way=Way.NEW, total=whole.most, why=why), whole
    if new.least > most_affected(whole.least):
        why = "more than a quarter of the records are new"
        return Computation(way=Way.NEW, total=whole.most, why=why), whole
    if elsewhere or not continued:
        why = elsewhere if continued else "its query changed"
        return Computation(way=Way.ALL, total=whole.most, why=why), whole
    found = _by_text(transform, projection, inputs, whole)
    read = Amount(new.least, whole.most)
    # Nobody knows yet how many come: where it is more than a quarter, all are read.
    is_few = new.most is not None and new.most <= most_affected(before)
    if found.way is Way.ALL:
        read = whole
    elif found.way in (Way.ADDED, Way.TOTALS) and is_few:
        beside = sum(e.state.records for e in inputs if e.state and e.new.most == 0)
        read = new + Amount(0, beside)
    return found, read


def _by_text(
    transform: TransformSql, projection: Projection, inputs: Sequence[Reading], whole: Amount
) -> Computation:
    from odfbuild.sql.increments.told import NOT_TOLD, columns_of, needed_records

    steps = steps_of(transform)
    states = {each.alias.lower(): each.state for each in inputs}
    told = NOT_TOLD
    columns = {
        alias: columns_of(read_schema(state.schema))
        for alias, state in states.items()
        if state is not None and state.schema is not None
    }
    if steps is not None and any("collate" in query.lower() for query, _ in steps):
        steps = None  # equal texts may be spelt in several ways
    if steps is not None and len(columns) == len(inputs) and not transform.temporal_tables:
        unchanged = tuple(each.alias.lower() for each in inputs if each.new.most == 0)
        vocabularies = [vocabulary_of(each.vocab) for each in states.values() if each]
        system = {n for v in vocabularies for n in (v.offset, v.operation_type, v.system_time)}
        told = needed_records(steps, columns, unchanged, tuple(sorted(system)))
    total = whole.most
    appended = all(each.appends for each in inputs if each.new.most != 0)
    is_short = projection.records <= most_affected(whole.least)
    if told.added and appended and (is_short or not told.totals):
        return Computation(way=Way.TOTALS if told.totals else Way.ADDED, total=total)
    keys = tuple(" = ".join(names) for names in told.keys or told.kept_keys)
    if told.keys:
        return Computation(way=Way.KEYS, total=total, keys=keys)
    if told.kept:
        return Computation(way=Way.KEPT, total=total, keys=keys)
    why, help, way = told.why, told.help, Way.ALL if told.sure else Way.AT_RUN
    if told.added and not appended:
        way = Way.AT_RUN
        why = f"new records may take earlier ones back, and then {why}"
    elif told.added:
        why = f"the result is more than a quarter as long as its inputs, and {why}"
    at = told.place if is_spark(transform) else None
    return Computation(way=way, total=total, why=why, help=help, at=at)
