"""Settings that name what is not there, and options of sources that cannot be honoured."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.plan.queries import checks
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
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


CHECKS = """  checks:
    - match: [derived]
      notNull: [event_time, valeu]
      unique: [[id, event_tme]]
      relationships: {id: {to: root, field: idd}, value: {to: rot, field: id}}
      severity: warn
    - match: [ROOT]
      notNull: [op, system_time, value]
"""


def test_a_plan_refuses_the_dataset_whose_checks_cannot_be_asked_and_no_other(
    odfbuild: Program, tiny: Tiny
) -> None:
    configured(tiny, CHECKS)
    for verb in ("plan", "validate"):
        said = odfbuild(verb)
        assert said.code == 1
        for message, place in (
            ("'derived' has no column 'valeu', which a check asks for", "odfbuild.yaml:9:29"),
            ("'derived' has no column 'event_tme'", "odfbuild.yaml:10:16"),
            ("'root' has no column 'idd', which a check asks for", "odfbuild.yaml:11:23"),
            ("a check of 'derived' refers to 'rot', which is no dataset", "odfbuild.yaml:11:"),
        ):
            assert message in said.out + said.err
            assert place in said.out + said.err
    datasets = odfbuild("plan", "--json").data["datasets"]
    refused = {each["name"]: each["refusal"] and each["refusal"]["code"] for each in datasets}
    assert refused == {"root": None, "derived": "E0541"}


def test_checks_of_definitions_that_did_not_change_are_looked_at_when_checks_are_new(
    odfbuild: Program, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(PlainEngine(), monkeypatch)
    odfbuild.apply()
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    configured(tiny, CHECKS)
    assert "error[E0541]" in odfbuild("plan").out
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().partition("    - match: [derived]")[0])
    configured(tiny, "    - match: ['*']\n      notNull: [id]\n")
    assert odfbuild("plan", "--detailed-exitcode").code == 0


def test_checks_that_were_found_right_are_not_looked_at_again(
    odfbuild: Program, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tiny, "  checks:\n    - match: ['*']\n      notNull: [id]\n")
    odfbuild.ok("plan")
    monkeypatch.setattr(checks, "wrong_checks", None)
    (tiny.root / ".odfbuild" / "decisions.bin").unlink(missing_ok=True)
    odfbuild.ok("plan")
    tiny.derive("derived", "SELECT event_time, id AS number FROM source")
    monkeypatch.undo()
    assert "'derived' has no column 'id'" in odfbuild("plan").out


def test_what_a_file_that_cannot_be_read_may_define_is_not_said_to_be_missing(
    odfbuild: Program, tiny: Tiny
) -> None:
    other = "      relationships: {id: {to: other, field: id}}\n"
    configured(tiny, f"  checks:\n    - match: [derived]\n{other}    - match: [other]\n")
    (tiny.root / "datasets" / "other.yaml").write_bytes(b"\xff")
    said = odfbuild("plan")
    assert "E0542" not in said.out and "E0151" not in said.err
    (tiny.root / "datasets" / "other.yaml").unlink()
    said = odfbuild("plan")
    assert "error[E0542]: a check of 'derived' refers to 'other', which is no dataset" in said.out
    assert "error[E0151]: no dataset is called 'other'" in said.err


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM slice «WHER» id > 1", "did you mean WHERE?"),
        ("SELECT «idd» FROM slice", "no input has a column 'idd'"),
        ("SELECT s.«idd» FROM slice s", "'s' has no column 'idd'"),
        ("SELECT id FROM «root»", "'root' is not an input"),
        ("SELECT «_event_time» FROM slice", "no input has a column '_event_time'"),
        ("SELECT «ids»(id) FROM slice", "there is no function ids()"),
        ("SELECT «upper»(id, id) FROM slice", "upper() takes 1 argument, not 2"),
        ("SELECT «(»id FROM slice", "`(` is not closed"),
        ("SELECT id FROM slice; «SELECT» id FROM slice", "a query must be a single statement"),
        ("«DELETE» FROM slice", "DELETE is not allowed in a query"),
        ("SELECT «{{ ref(x) }}» FROM slice", "the query holds a template"),
    ],
)
def test_a_query_of_a_check_that_is_wrong_is_refused_with_its_place(
    odfbuild: Program, tiny: Tiny, query: str, told: str
) -> None:
    begin = '        wrong: "'
    plain = query.replace("«", "").replace("»", "")
    configured(tiny, f'  checks:\n    - match: [derived]\n      sql:\n{begin}{plain}"\n')
    for verb in ("validate", "plan"):
        said = odfbuild(verb)
        assert said.code == 1
        text = said.out + said.err
        assert "error[E0543]: a check of 'derived' is not a query over `slice`: " in text
        assert told in text
        assert f"--> odfbuild.yaml:10:{len(begin) + query.index('«') + 1}\n" in text


RIGHT = (
    "SELECT id, id FROM slice WHERE event_time > now()",
    "SELECT * FROM SLICE TABLESAMPLE (10 PERCENT) LIMIT 1",
    "SELECT op, offset, system_time, first(value), rand() FROM slice GROUP BY 1, 2, 3",
    "SELECT count(*) AS n FROM slice HAVING n > 2",
    "WITH s AS (SELECT id FROM slice) SELECT id FROM s WHERE id NOT IN (SELECT value FROM slice)",
)


def test_a_query_of_a_check_may_do_what_a_query_of_a_dataset_may_not(
    odfbuild: Program, tiny: Tiny
) -> None:
    named = "".join(f'        n{n}: "{query}"\n' for n, query in enumerate(RIGHT))
    configured(tiny, f"  checks:\n    - match: ['*']\n      sql:\n{named}")
    odfbuild.ok("validate")
    odfbuild.ok("plan")


def test_a_pattern_that_no_dataset_matches_is_refused(odfbuild: Program, tiny: Tiny) -> None:
    configured(
        tiny,
        """  checks:
    - match: [root, derivd]
      notNull: [id]
  owners:
    - match: ["sales.*"]
      owners: [ann@example.org]
  tables:
    - {match: [rot], format: parquet, location: ../lake}
  watermarks:
    - {match: [rooot], delay: 1h}
""",
    )
    for verb in ("validate", "plan"):
        said = odfbuild(verb)
        assert said.code == 1
        told = "error[E0151]: no dataset is called 'derivd', so this entry of `checks` does"
        assert told in said.err
        assert "odfbuild.yaml:8:21" in said.err
        assert "did you mean 'derived'?" in said.err
        for pattern in ("sales.*", "rot", "rooot"):
            assert f"error[E0151]: no dataset is called '{pattern}'" in said.err


def test_a_pattern_that_was_to_hide_a_column_and_matches_none_is_told(
    odfbuild: Program, tiny: Tiny
) -> None:
    configured(
        tiny,
        """  show:
    - match: ["*"]
    - match: [root]
      columns: {exclude: [valeu, ID], include: [id, value, "x*"]}
    - match: [roots]
""",
    )
    for verb in ("validate", "plan"):
        said = odfbuild(verb)
        assert said.code == 1
        assert "error[E1220]: no dataset of this entry has a column 'valeu'" in said.err
        assert "odfbuild.yaml:10:27" in said.err
        assert "did you mean 'value'?" in said.err
        assert "has a column 'x*'" in said.err
        assert "error[E0151]: no dataset is called 'roots', so this entry of `show`" in said.err
        assert said.err.count("error[") == 3


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


TABLES = """  tables:
    - {match: [root], format: parquet, location: lake, partitionBy: [idd], sort: [id, system_time]}
    - {match: [derived], format: parquet, location: lake, partitionBy: [share]}
    - {match: [derived], format: parquet, location: lake, name: Root}
    - {match: [derived], format: parquet, location: lake, name: fine, view: history, sort: [OFFSET]}
"""


def test_tables_that_cannot_be_are_refused_before_anything_runs(
    odfbuild: Program, tiny: Tiny
) -> None:
    tiny.derive("derived", "SELECT event_time, id, CAST(value AS DOUBLE) AS share FROM source")
    configured(tiny, TABLES)

    def place(line: int, word: str) -> str:
        text = (tiny.root / "odfbuild.yaml").read_text().splitlines()[line - 1]
        return f"odfbuild.yaml:{line}:{text.index(word) + 1}"

    told = (
        ("E1304", "'root' has no column 'idd' for `partitionBy`", place(8, "idd")),
        ("E1304", "'root' has no column 'system_time' for `sort`", place(8, "system_time")),
        ("E1305", "the column 'share' of type", place(9, "share")),
        ("E1312", "two tables are called 'Root'", place(10, "match")),
    )
    said = odfbuild("validate")
    assert said.code == 1
    assert said.err.count("error[") == len(told)
    planned = odfbuild("plan")
    assert planned.code == 1
    for code, message, where in told:
        assert f"error[{code}]: {message}" in said.err
        assert f"--> {where}" in said.err
        assert message[1:] in planned.out
        assert where in planned.out
    tables = odfbuild("plan", "--json").data["tables"]
    refused = [each["name"] for each in tables if each["refusal"]]
    assert sorted(refused) == ["Root", "derived", "root"]


def test_tables_of_datasets_whose_columns_only_data_can_tell_are_left_to_apply(
    odfbuild: Program, tiny: Tiny
) -> None:
    file = tiny.root / "datasets" / "root.yaml"
    text = file.read_text()
    start, end = text.index("        schema:"), text.index("      merge:")
    file.write_text(text[:start] + text[end:])
    (tiny.root / "datasets" / "derived.yaml").unlink()
    configured(tiny, TABLES.splitlines()[0] + "\n" + TABLES.splitlines()[1] + "\n")
    odfbuild.ok("validate")
    odfbuild.ok("plan")
