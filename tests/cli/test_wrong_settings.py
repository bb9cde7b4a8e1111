"""Settings that name what is not there, and options of sources that cannot be honoured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


def configured(tiny: Tiny, text: str) -> None:
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + text)


def test_a_check_of_a_column_that_is_not_there_is_refused_before_anything_runs(
    odfbuild: Program, tiny: Tiny
) -> None:
    configured(
        tiny,
        """  checks:
    - match: ["*"]
      notNull: [event_time, valeu]
    - match: [derived]
      unique: [[id, event_tme]]
      relationships: {id: {to: root, field: idd}}
      acceptedValues: {values: [1, 2]}
    - match: [root]
      notNull: [op, system_time]
""",
    )
    said = odfbuild("validate")
    assert said.code == 1
    for message, place, help_ in (
        ("'root' has no column 'valeu'", "odfbuild.yaml:9:29", "did you mean 'value'?"),
        ("'derived' has no column 'event_tme'", "odfbuild.yaml:11:16", "'event_time'?"),
        ("'root' has no column 'idd'", "odfbuild.yaml:12:", "did you mean 'id'?"),
        ("'derived' has no column 'values'", "odfbuild.yaml:13:", "did you mean 'value'?"),
    ):
        assert f"error[E0541]: {message}, which a check asks for" in said.err
        assert place in said.err
        assert help_ in said.err
    assert said.err.count("error[") == 4


def test_a_pattern_that_no_dataset_matches_is_refused(odfbuild: Program, tiny: Tiny) -> None:
    configured(
        tiny,
        """  checks:
    - match: [root, derivd]
      notNull: [id]
  owners:
    - match: ["sales.*"]
      owners: [ann@example.org]
""",
    )
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E0151]: no dataset is called 'derivd', so this entry of `checks` does" in said.err
    assert "odfbuild.yaml:8:21" in said.err
    assert "did you mean 'derived'?" in said.err
    assert "error[E0151]: no dataset is called 'sales.*'" in said.err


@pytest.mark.parametrize(
    ("option", "value", "help_"),
    [
        ("timestampFormat", "yyyy-MM-dd", "to_timestamp(COLUMN, 'yyyy-MM-dd')"),
        ("dateFormat", "dd.MM.yyyy", "to_date(COLUMN, 'dd.MM.yyyy')"),
        ("encoding", "utf-88", "use the name of an encoding"),
        ("separator", '"||"', "use a single ASCII character"),
        ("quote", "\"''\"", "use a single ASCII character"),
    ],
)
def test_options_that_apply_cannot_honour_are_refused_at_their_place(
    odfbuild: Program, tiny: Tiny, option: str, value: str, help_: str
) -> None:
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(
        file.read_text().replace("header: true\n", f"header: true\n        {option}: {value}\n")
    )
    for command in ("validate", "plan"):
        said = odfbuild(command)
        assert said.code == 1
        assert f"of `read.{option}` is not supported" in said.out + said.err
        assert "datasets/root.yaml:15:" in said.out + said.err
        assert help_ in said.out + said.err


@pytest.mark.parametrize(
    ("called", "help_"),
    [
        ("ref('root')", "list the dataset under `inputs`, and write its alias"),
        ("source('raw', 'root')", "list the dataset under `inputs`, and write its alias"),
        ("var('least')", "with `vars: {x: …}` in odfbuild.yaml"),
        ("env_var('LEAST')", "`--var x=…`"),
        ("config(materialized='table')", "say it in the definition"),
        ("is_incremental()", "write the query over all records"),
    ],
)
def test_a_template_that_calls_what_dbt_has_is_told_what_to_write_instead(
    odfbuild: Program, tiny: Tiny, called: str, help_: str
) -> None:
    file = tiny.root / "datasets" / "derived.yaml"
    text = file.read_text().replace("FROM source", f"FROM {{{{ {called} }}}}")
    file.rename(file.with_name("derived.yaml.j2")).write_text(text)
    said = odfbuild("plan")
    assert said.code == 1
    assert f"error[E0121]: '{called.partition('(')[0]}' is not defined" in said.out + said.err
    assert help_ in said.out + said.err
    assert "datasets/derived.yaml.j2:15" in said.out + said.err


def test_a_plan_does_not_make_validate_believe_in_a_query_of_another_engine(
    odfbuild: Program, tiny: Tiny
) -> None:
    configured(tiny, "  engines: {flink: spark}\n")
    file = tiny.root / "datasets" / "derived.yaml"
    text = file.read_text().replace("engine: spark", "engine: flink")
    file.write_text(text.replace("value * 10 AS value", "FLOOR(value) AS value"))
    for command in ("validate", "plan", "validate"):
        said = odfbuild(command)
        assert (said.code, "E0519" in said.out + said.err) == (1, True), command
