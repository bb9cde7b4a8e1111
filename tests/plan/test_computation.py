"""How a changelog will be computed, how much that reads, and what policies say to it."""

from __future__ import annotations

import pytest

from odfbuild.declared_settings import Misfit, read
from odfbuild.errors import PlanError
from odfbuild.odf.model import MergeStrategy, MergeStrategyAppend, MergeStrategySnapshot
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.limits import check_reads
from odfbuild.plan.model import Action, DatasetPlan, ReasonCode
from odfbuild.plan.ways import Computation, Way
from odfbuild.project.settings.policy import Policy, limits_of
from tests.plan.test_policies import planned
from tests.plan.worlds import UNCHANGED, World, ledger, news, polling

MAX = "SELECT MAX(event_time) AS event_time"
TOTALS = f"{MAX}, name, COUNT(*) AS n FROM orders GROUP BY name"
KEYS = f"{MAX}, name, COUNT(DISTINCT id) AS n FROM orders GROUP BY name"
WHOLE = f"{MAX}, COUNT(DISTINCT id % 9) AS n FROM orders"
DISTINCT = f"{MAX}, COUNT(DISTINCT id) AS n FROM orders"
COUNT = f"{MAX}, COUNT(*) AS n FROM orders"
OLD, NEW = 1_000_000, 1_240


def world(
    query: str, merge: MergeStrategy | None = None, new: int = NEW, result: int = 10
) -> World:
    made = World().root("orders", polling(merge=merge)).derivative("sums", "orders", query=query)
    orders = made.commit("orders").add(OLD)
    made.commit("sums").run(result, orders)
    made.has("orders", UNCHANGED)
    if new:
        orders.add(new)
    return made


def sums(made: World, *policies: Policy) -> DatasetPlan:
    return planned(made, *policies)["sums"]


def way(made: World) -> Computation:
    pending = sums(made).pending
    assert pending is not None
    assert pending.computation is not None
    return pending.computation


def reads(made: World) -> tuple[int, int | None]:
    pending = sums(made).pending
    assert pending is not None
    return pending.read_least, pending.read_most


SNAPSHOT = MergeStrategySnapshot(primary_key=("id",))


@pytest.mark.parametrize(
    ("query", "merge", "expected", "least", "most"),
    [
        (TOTALS, ledger("id"), Way.TOTALS, NEW, NEW),
        (TOTALS, MergeStrategyAppend(), Way.TOTALS, NEW, NEW),
        (TOTALS, SNAPSHOT, Way.KEYS, NEW, OLD + NEW),
        (KEYS, ledger("id"), Way.KEYS, NEW, OLD + NEW),
        (COUNT, ledger("id"), Way.TOTALS, NEW, NEW),
        (COUNT, SNAPSHOT, Way.KEPT, NEW, OLD + NEW),
        (DISTINCT, ledger("id"), Way.KEPT, NEW, OLD + NEW),
        (WHOLE, ledger("id"), Way.ALL, OLD + NEW, OLD + NEW),
        (f"{WHOLE} HAVING COUNT(*) COLLATE x", ledger("id"), Way.AT_RUN, NEW, OLD + NEW),
    ],
)
def test_the_way_follows_from_query_and_merge(
    query: str, merge: MergeStrategy, expected: Way, least: int, most: int
) -> None:
    made = world(query, merge)
    assert (way(made).way, way(made).total) == (expected, OLD + NEW)
    assert reads(made) == (least, most)


def test_a_long_result_is_not_added_to() -> None:
    assert way(world(TOTALS, result=OLD // 2)).way is Way.KEYS


def test_much_news_is_read_with_all_that_there_is() -> None:
    made = world(TOTALS, new=OLD)
    assert (way(made).way, reads(made)) == (Way.NEW, (2 * OLD, 2 * OLD))


def test_a_changed_query_is_computed_over_all_records() -> None:
    query = f"{MAX}, MAX(id) AS id, name FROM orders GROUP BY name"
    made = world(query).derivative("sums", "orders", query=query.replace("MAX(id)", "MIN(id)"))
    assert (way(made).way, way(made).why) == (Way.ALL, "its query changed")


def test_news_of_a_source_bound_what_is_read_while_they_are_few() -> None:
    made = world(TOTALS, new=0).has("orders", news(NEW))
    assert (way(made).way, reads(made)) == (Way.TOTALS, (0, NEW))
    assert reads(world(TOTALS, new=0).has("orders", news(OLD))) == (0, 2 * OLD)


def test_few_records_are_read_whatever_the_query_is() -> None:
    made = World().root("orders", polling()).derivative("sums", "orders", query=WHOLE)
    orders = made.commit("orders").add(50)
    made.commit("sums").run(10, orders)
    made.has("orders", UNCHANGED)
    orders.add(3)
    pending = sums(made, Policy(match=("*",), incremental="required")).pending
    assert pending is not None
    assert pending.computation is None


@pytest.mark.parametrize(
    ("query", "policy", "code"),
    [
        (WHOLE, Policy(match=("s*",), incremental="required"), "E0366"),
        (WHOLE, Policy(match=("*",), max_records=OLD), "E0367"),
        (WHOLE, Policy(match=("*",), max_read=1_000_000), "E0368"),
        (TOTALS, Policy(match=("*",), max_records=NEW - 1), "E0367"),
        (KEYS, Policy(match=("*",), max_records=NEW, incremental="required"), None),
        (TOTALS, Policy(match=("*",), max_read=1_000_000, max_records=NEW), None),
    ],
)
def test_policies_refuse_what_reads_too_much(query: str, policy: Policy, code: str | None) -> None:
    found = sums(world(query), policy)
    if code is None:
        assert found.refusal is None
        return
    assert found.refusal is not None
    assert (found.refusal.code, found.actions) == (code, (Action.REFUSE,))
    assert [each.code for each in found.reasons] == [ReasonCode.POLICY_LIMIT]
    assert "--allow read:sums" in (found.refusal.help or "")


def test_of_several_entries_the_last_one_wins_for_each_limit() -> None:
    policies = (
        Policy(match=("*",), incremental="required", max_records=10, max_read=5),
        Policy(match=("s*",), incremental="preferred", max_records=20),
    )
    found = limits_of(policies, "sums")
    assert (found.incremental, found.max_records, found.max_read) == (None, (20, 1), (5, 0))


def test_sizes_are_written_with_their_unit() -> None:
    read_size = read(tuple[Policy, ...], [{"match": ["*"], "maxRead": "10GB"}])[0].max_read
    assert read_size == 10 * 10**9
    with pytest.raises(Misfit):
        read(tuple[Policy, ...], [{"match": ["*"], "maxRead": "10 potatoes"}])


@pytest.mark.parametrize("name", ["nobody", "root+"])
def test_consent_to_read_more_names_datasets_of_the_project(name: str) -> None:
    definitions = World().root("root").definitions.values()
    with pytest.raises(PlanError) as caught:
        check_reads([Consent.parse(name)], definitions)
    assert caught.value.code == "E0369"
    assert check_reads([Consent.parse("Root")], definitions) == {"root"}
