"""An input whose chain goes while `apply` is at work, after all that was checked before."""

from __future__ import annotations

import shutil

import pytest

from odfbuild.apply.definitions import resolve_changes
from odfbuild.apply.derive import read_inputs
from odfbuild.errors import PlanError
from odfbuild.survey.survey import survey
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


def test_a_committed_input_that_is_gone_is_named(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    state = tiny.workspace().projection("derived")
    assert state is not None and state.transform is not None
    shutil.rmtree(tiny.root / "chains" / "root")
    with pytest.raises(PlanError) as caught:
        read_inputs(tiny.workspace(), "derived", state)
    assert caught.value.code == "E0310"
    assert str(state.transform.inputs[0].dataset_ref) in caught.value.message


def test_a_new_input_that_is_gone_before_its_reader_begins_is_named(tiny: Tiny) -> None:
    (item,) = (each for each in survey(tiny.root).plan.datasets if each.name == "derived")
    with pytest.raises(PlanError) as caught:
        resolve_changes(item, tiny.workspace(), "spark")
    assert caught.value.code == "E0311"
    assert "'root'" in caught.value.message
