"""Whether a query keeps the event times of what it reads is told from its text."""

import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.plan.columns.event_time import keeps_event_time


def kept(query: str, *inputs: str) -> bool:
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))
    return keeps_event_time(transform, inputs)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, id FROM a",
        "SELECT * FROM a",
        "SELECT GREATEST(a.event_time, b.event_time) AS event_time FROM a JOIN b USING (id)",
        "SELECT GREATEST(b.event_time, a.event_time) AS event_time FROM a JOIN b USING (id)",
    ],
)
def test_an_event_time_that_is_handed_on_is_kept(query: str) -> None:
    assert kept(query, "a", "b")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT GREATEST(a.event_time, a.event_time) AS event_time FROM a JOIN b ON a.id = b.id",
        "SELECT GREATEST(a.event_time, a.arrived) AS event_time FROM a JOIN b ON a.id = b.id",
        "SELECT LEAST(a.event_time, b.event_time) AS event_time FROM a JOIN b ON a.id = b.id",
        "SELECT event_time + INTERVAL 1 DAY AS event_time FROM a",
        "SELECT arrived AS event_time FROM a",
        "SELECT a.event_time FROM a JOIN b ON a.id = b.id",
    ],
)
def test_an_event_time_that_is_another_is_not_kept(query: str) -> None:
    assert not kept(query, "a", "b")
