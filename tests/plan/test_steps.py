"""Which steps a plan leads to, as values."""

from __future__ import annotations

import pytest

from odfbuild.errors import PlanError
from odfbuild.odf.model import DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.model import Action, DatasetPlan, Promoted
from odfbuild.plan.steps import (
    CheckRights,
    Define,
    Delete,
    Derive,
    Ingest,
    Publish,
    Rename,
    StartAgain,
    Step,
    steps_of,
)

ROOT, DERIVATIVE = DatasetKind.Root, DatasetKind.Derivative
BLOCK = Multihash.sha3_256(b"a block")


def plan_of(kind: DatasetKind, *actions: Action, **more: object) -> DatasetPlan:
    given = {"name": "a", "id": None, "expected_head": None, "reasons": (), **more}
    return DatasetPlan(kind=kind, actions=actions, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("item", "steps"),
    [
        (plan_of(ROOT, Action.CREATE), (Define(), Ingest(False))),
        (plan_of(ROOT, Action.POLL), (Define(), CheckRights(), Ingest(True))),
        (plan_of(DERIVATIVE, Action.APPEND), (Define(), Derive())),
        (plan_of(DERIVATIVE, Action.RUN), (Define(), CheckRights(), Derive())),
        (plan_of(DERIVATIVE, Action.DELETE), (Delete(),)),
        (
            plan_of(DERIVATIVE, Action.REBUILD, Action.RUN),
            (StartAgain(), Define(), CheckRights(), Derive()),
        ),
        (
            plan_of(ROOT, Action.RENAME, Action.RUN, renamed_from="b"),
            (Rename("b"), Define(), CheckRights(), Ingest(True)),
        ),
        (
            plan_of(DERIVATIVE, promoted=Promoted(branch=BLOCK, replays=True, onto=BLOCK)),
            (StartAgain(BLOCK, False), Define(), Derive()),
        ),
        (plan_of(DERIVATIVE, promoted=Promoted(branch=BLOCK)), (Define(), Derive())),
        (plan_of(ROOT, Action.RUN, refusal=PlanError("no", code="E0310")), ()),
    ],
)
def test_a_plan_says_which_steps_come_in_which_order(
    item: DatasetPlan, steps: tuple[Step, ...]
) -> None:
    assert steps_of(item, exists=True) == steps


def test_a_dataset_that_has_no_chain_does_not_start_again() -> None:
    item = plan_of(DERIVATIVE, Action.REBUILD, Action.RUN)
    assert steps_of(item, exists=False) == (Define(), CheckRights(), Derive())


@pytest.mark.parametrize("reads", [True, False])
def test_a_portal_takes_blocks_over_only_if_the_plan_says_so(reads: bool) -> None:
    item = plan_of(ROOT, *([Action.RUN] if reads else []))
    assert steps_of(item, exists=True, portal_of="b")[-1] == Publish("b", reads)
