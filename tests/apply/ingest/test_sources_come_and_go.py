"""A source that leaves its definition is disabled in the chain, and enabled when it comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odfbuild.odf.model import (
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    SetPollingSource,
)
from tests.apply.tiny import NO_JVM, Tiny

pytestmark = pytest.mark.spark

Near = Callable[[Path], Tiny]

_WITHOUT_SOURCE = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata: []
"""
_PUSHED = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]
      merge: {kind: Ledger, primaryKey: [id]}
"""


def test_a_removed_source_is_disabled_and_comes_back_where_it_stopped(
    near: Near, tmp_path: Path
) -> None:
    tiny = near(tmp_path)
    definition = tmp_path / "datasets" / "root.yaml"
    polled = definition.read_text()
    tiny.apply()
    assert tiny.ids("root") == [1, 2, 3]

    definition.write_text(_WITHOUT_SOURCE)
    tiny.arrive(2)
    planned = tiny.run("plan").stdout
    assert "~ root  metadata: DisablePollingSource" in planned
    assert "0 to run" in planned
    tiny.apply(env=NO_JVM)
    assert tiny.events("root")[-1] == DisablePollingSource()
    assert tiny.run("plan").stdout.startswith("No changes.")
    tiny.apply(env=NO_JVM)
    assert tiny.ids("root") == [1, 2, 3]

    definition.write_text(_PUSHED)
    tiny.apply(env=NO_JVM)
    assert isinstance(tiny.events("root")[-1], AddPushSource)

    definition.write_text(polled)
    assert "1 to change, 2 to run" in tiny.run("plan").stdout
    tiny.apply()
    kinds = [type(event) for event in tiny.events("root")[-3:-1]]
    assert kinds == [DisablePushSource, SetPollingSource]
    assert tiny.ids("root") == [1, 2, 3, 4]
    assert tiny.ids("derived") == [1, 2, 3, 4]
    assert tiny.run("verify").returncode == 0
