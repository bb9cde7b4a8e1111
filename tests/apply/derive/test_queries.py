"""Queries are checked before anything is done, from schemas alone, and only once."""

from __future__ import annotations

import shutil

import pytest

from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.spark


def test_queries_are_checked_over_what_others_give_before_any_data_is_there(
    tiny: Tiny, odfbuild: Program
) -> None:
    tiny.derive("further", "SELECT event_time, value * 2 AS twice FROM source", "derived")
    said = odfbuild.ok("validate", "--engine")
    assert said.out == "3 datasets defined, all valid; 2 queries were checked by the engine.\n"
    assert tiny.workspace().aliases() == []


def test_all_wrong_queries_are_named_with_place_and_a_guess(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("further", "SELECT event_time, valeu FROM source", "derived")
    tiny.derive("other", "SELECT event_time, rand() AS r FROM source")
    said = odfbuild("validate", "--engine")
    assert said.code == 1
    assert "datasets/further.yaml:15:" in said.err
    assert "did you mean" in said.err
    assert "`value`" in said.err or "'value'" in said.err
    assert "datasets/other.yaml:15:" in said.err


def test_a_query_that_was_found_right_is_not_checked_again(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.ok("validate", "--engine")
    # Whoever asks this engine for anything fails.
    share(None, monkeypatch)
    odfbuild.ok("validate", "--engine")
    tiny.derive("derived", QUERY.replace("10", "11"))
    assert "AttributeError" in odfbuild("validate", "--engine").err


def test_a_text_that_only_spark_understands_is_refused_until_spark_accepted_it(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT event_time, id, value AS select FROM source"
    tiny.derive("derived", query)
    for verb in ("validate", "plan"):
        said = odfbuild(verb)
        assert said.code == 1
        shown = said.out + said.err
        assert "error[E0524]: the query is not understood at `select`" in shown
        assert "datasets/derived.yaml:15:43" in shown
        assert "odfbuild validate --engine" in shown
    odfbuild.ok("validate", "--engine")
    with monkeypatch.context() as patch:
        share(None, patch)
        odfbuild.ok("validate")
        assert "1 refused" not in odfbuild("plan").out
    odfbuild.apply()
    # The chain says that it was accepted, also to those who have never asked Spark.
    shutil.rmtree(tiny.root / ".odfbuild")
    odfbuild.ok("validate")
    odfbuild.ok("plan")


def test_what_spark_refuses_is_not_remembered_as_understood(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("derived", "SELECT event_time, id, value AS select FROM source WHERE 1 1")
    assert "error[E0501]" in odfbuild("validate", "--engine").err
    assert "error[E0524]" in odfbuild("validate").err


def test_what_only_data_can_tell_is_said(tiny: Tiny, odfbuild: Program) -> None:
    root = tiny.root / "datasets" / "root.yaml"
    text = root.read_text()
    start, end = text.index("        schema:"), text.index("      merge:")
    root.write_text(text[:start] + text[end:])
    said = odfbuild.ok("validate", "--engine")
    assert "0 queries were checked" in said.out
    assert said.err == "Not checked for columns, because their inputs have no data yet: derived.\n"

    # What no data can repair is found all the same, and before any of them are fetched.
    for query, why in (
        ("SELECT event_time, nwo() AS x FROM source", "there is no function nwo()"),
        ("SELECT event_time, now() AS x FROM source", "now() reads the clock"),
        ("SELECT event_time FROM sauce", "'sauce' is not an input of this query"),
        ("SELECT event_time) FROM source", "error[E0501]"),
    ):
        tiny.derive("derived", query)
        said = odfbuild("validate", "--engine")
        assert said.code == 1
        assert why in said.err
        assert "datasets/derived.yaml:15:" in said.err
    said = odfbuild("apply", "-y")
    assert "! derived  refused" in said.out
    assert tiny.workspace().aliases() == ["root"]


def test_apply_touches_nothing_that_depends_on_a_wrong_query(tiny: Tiny, odfbuild: Program) -> None:
    query = "SELECT event_time, array_max(event_time) AS most FROM source"
    tiny.derive("further", query, "derived")
    tiny.derive("last", query, "further")
    said = odfbuild("apply", "-y")
    assert said.code == 4
    assert "datasets/further.yaml:15:" in said.err
    assert tiny.workspace().aliases() == ["derived", "root"]
    assert "failed     further" in said.out
    assert "skipped    last" in said.out


def test_a_changed_query_that_history_forbids_is_found_before_any_work(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    tiny.derive("derived", "SELECT event_time, id, CAST(value AS STRING) AS value FROM source")
    said = odfbuild("validate", "--engine")
    assert said.code == 1
    assert "error[E0521]" in said.err
