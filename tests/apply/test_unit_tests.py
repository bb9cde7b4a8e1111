"""Unit tests of queries, on an engine without a JVM; tests/example has those on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import odfbuild as package
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

HEAD = "kind: UnitTests\nversion: 1\ncontent:\n  dataset: derived\n  tests:\n"
TEN_TIMES = """\
    - name: values are ten times as large
      given:
        source:
          rows:
            - {id: 1, value: 1}
            - {id: 2, value: null}
      expect:
        rows:
          - {id: 2, value: null}
          - {id: 1, value: 10}
"""
WRONG = """\
    - name: fails in three ways
      given:
        root:
          csv: |
            id,value
            1,1
            2,2
            3,3
      expect:
        rows:
          - {id: 1, value: 10}
          - {id: 2, value: 21}
          - {id: 7, value: 70}
"""
FILE = "datasets/derived.test.yaml"


def put(tiny: Tiny, *tests: str, file: str = FILE, head: str = HEAD) -> None:
    (tiny.root / file).write_text(head + "".join(tests))


def test_a_test_whose_records_come_as_expected_passes(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, TEN_TIMES)
    said = odfbuild.ok("test", "--unit")
    assert said.out == "Unit tests: 1 test of 1 dataset, 1 passed, 0 failed.\n"


def test_no_chain_is_made_and_no_data_is_read(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, TEN_TIMES)
    (tiny.root / "data" / "1.csv").unlink()
    odfbuild.ok("test", "--unit")
    assert not [*(tiny.root / "chains").rglob("*")]
    assert not [*(tiny.root / ".odfbuild" / "scratch").iterdir()]


def test_a_failing_test_shows_the_difference_as_a_table(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, TEN_TIMES, WRONG)
    said = odfbuild("test", "--unit")
    assert said.code == 3
    assert (
        said.out
        == """\
  ! derived: fails in three ways
      --> datasets/derived.test.yaml:16:13
           id  value
        ~  2   21 → 20
        -  7   70
        +  3   30

  - is missing, + was not expected, ~ is changed: expected → actual

Unit tests: 2 tests of 1 dataset, 1 passed, 1 failed.
"""
    )


def test_the_difference_is_there_as_json_and_markdown(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, WRONG)
    (found,) = odfbuild("test", "--unit", "--json").data["tests"]
    assert found["difference"] == {
        "columns": ["op", "id", "value"],
        "missing": [{"op": "+A", "id": 7, "value": 70}],
        "unexpected": [{"op": "+A", "id": 3, "value": 30}],
        "changed": [
            {
                "expected": {"op": "+A", "id": 2, "value": 21},
                "actual": {"op": "+A", "id": 2, "value": 20},
                "columns": ["value"],
            }
        ],
    }
    assert (found["file"], found["line"], found["modes"]) == (FILE, 6, ["map"])
    shown = odfbuild("test", "--unit", "--md").out
    assert "#### `derived`: fails in three ways" in shown
    assert "| `~` | 2 | 21 → 20 |\n" in shown


def test_a_result_may_be_compared_in_some_columns_only(tiny: Tiny, odfbuild: Program) -> None:
    put(
        tiny,
        TEN_TIMES.replace(
            "{id: 2, value: null}\n          - {id: 1, value: 10}", "{id: 2}\n          - {id: 1}"
        ),
    )
    odfbuild.ok("test", "--unit")


def test_steps_are_runs_after_each_other(tiny: Tiny, odfbuild: Program) -> None:
    put(
        tiny,
        """\
    - name: each step adds what is new
      steps:
        - given: {source: {rows: [{id: 1, value: 1}]}}
          expect: {rows: [{id: 1, value: 10}]}
        - given: {source: {rows: [{id: 2, value: 2}]}}
          expect: {rows: [{id: 2, value: 21}]}
""",
    )
    said = odfbuild("test", "--unit")
    assert said.code == 3
    assert "datasets/derived.test.yaml:10:11 (step 2 of 2)" in said.out


def test_all_that_is_wrong_with_tests_is_told_at_once_with_its_place(
    tiny: Tiny, odfbuild: Program
) -> None:
    put(
        tiny,
        """\
    - name: one
      given:
        sourc: {rows: []}
        source:
          rows: [{idd: 1}]
          watermark: yesterday
      expect:
        rows: [{valu: 1}]
    - name: two
      given: {}
""",
    )
    put(tiny, TEN_TIMES, file="datasets/b.test.yaml", head=HEAD.replace("derived", "derivd"))
    put(tiny, TEN_TIMES, file="datasets/c.test.yaml", head=HEAD.replace("derived", "root"))
    (tiny.root / "datasets/d.test.yaml").write_text("kind: UnitTest\nversion: 1\n")
    for command in (("validate",), ("test", "--unit")):
        said = odfbuild(*command)
        assert said.code == 1
        for code, text, place, help in (
            ("E1240", "no dataset 'derivd' is defined", "b.test.yaml:4:12", "'derived'"),
            ("E1240", "'root' is a root dataset", "c.test.yaml:4:12", "`checks`"),
            ("E1241", "no input 'sourc'", "derived.test.yaml:8:9", "'source'"),
            ("E1244", "'yesterday' is not a time", "derived.test.yaml:11:22", "2013-01-02T"),
            ("E1245", "'source' has no column 'idd'", "derived.test.yaml:10:19", "'id'"),
            ("E1245", "the result has no column 'valu'", "derived.test.yaml:13:17", "'value'"),
            ("E1242", "nothing is expected", "derived.test.yaml:14:7", "expect"),
            ("E0105", "expected UnitTests", "d.test.yaml:1:1", "docs/unit-tests.md"),
        ):
            found = said.err[said.err.index(f"error[{code}]: ") :]
            assert text in said.err
            assert f"datasets/{place}\n" in found
            assert help in found


def test_lint_tells_what_is_wrong_with_tests_of_the_chosen_datasets(
    tiny: Tiny, odfbuild: Program
) -> None:
    tiny.derive("other", "SELECT event_time, id, value FROM source")
    wrong = TEN_TIMES.replace("{id: 1, value: 1}", "{idd: 1}")
    put(tiny, wrong)
    put(tiny, wrong, file="datasets/o.test.yaml", head=HEAD.replace("derived", "other"))
    assert odfbuild("lint").out.count("E1245") == 2
    assert odfbuild("lint", "other").out.count("E1245") == 1


def test_values_that_do_not_fit_their_columns_are_told_at_once(
    tiny: Tiny, odfbuild: Program
) -> None:
    put(
        tiny,
        """\
    - name: one
      given:
        source:
          rows:
            - {id: 1.5, value: "x"}
            - {op: "+B"}
      expect:
        csv: |
          id
          one
""",
    )
    said = odfbuild("test", "--unit")
    assert said.code == 1
    for text in (
        "column 'id': expected a whole number; found the number 1.5",
        "column 'value': expected a whole number; found the string 'x'",
        "column 'op': an operation is one of +A, -R, -C, +C; found the string '+B'",
        "record 1, column 'id': expected a whole number; found the string 'one'",
    ):
        assert text in said.err
    assert said.err.count("error[E1246]") == 4


def test_contradictions_are_refused(tiny: Tiny, odfbuild: Program) -> None:
    put(
        tiny,
        TEN_TIMES,
        TEN_TIMES,
        """\
    - name: both
      given: {source: {rows: [], csv: ""}}
      steps:
        - expect: {}
""",
    )
    said = odfbuild("validate")
    assert "error[E1243]: 'derived' has two tests called" in said.err
    assert "a test has either `steps`, or `given` and `expect`" in said.err
    assert "no records are given" in said.err


def test_an_input_without_known_columns_says_what_to_do(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, TEN_TIMES)
    root = tiny.root / "datasets/root.yaml"
    text = root.read_text()
    root.write_text(text[: text.index("        schema:")] + text[text.index("      merge:") :])
    said = odfbuild("test", "--unit")
    assert "error[E1247]: the columns of the inputs of 'derived' are not known" in said.err
    assert "apply the datasets upstream once" in said.err


def test_files_of_tests_are_templates_too(tiny: Tiny, odfbuild: Program) -> None:
    text = HEAD + TEN_TIMES.replace("larger", "{{ n }}").replace("are ten", "are {{ n }} ten")
    file = tiny.root / "datasets/derived.test.yaml.j2"
    file.write_text("matrix:\n  n: [1, 2]\n---\n" + text.replace("value: 10", "value: {{ n }}0"))
    said = odfbuild("test", "--unit")
    assert "2 tests of 1 dataset, 1 passed, 1 failed" in said.out
    assert "datasets/derived.test.yaml.j2:9:13 (n=2)" in said.out


def test_a_selection_leaves_other_tests_out(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("other", "SELECT event_time, id, value * 3 AS value FROM source")
    put(tiny, TEN_TIMES)
    put(tiny, TEN_TIMES, file="datasets/o.test.yaml", head=HEAD.replace("derived", "other"))
    assert "2 tests of 2 datasets, 1 passed, 1 failed" in odfbuild("test", "--unit").out
    assert "1 test of 1 dataset, 1 passed" in odfbuild.ok("test", "--unit", "derived").out
    assert (
        "1 test of 1 dataset, 1 passed" in odfbuild.ok("test", "--unit", "--exclude", "other").out
    )


def test_a_project_without_tests_says_where_they_stand(odfbuild: Program) -> None:
    assert "NAME.test.yaml" in odfbuild.ok("test", "--unit").out
    assert odfbuild.ok("test", "--unit", "--json").data == {"tests": [], "passed": 0, "failed": 0}


def test_plans_take_no_notice_of_files_of_tests(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    put(tiny, "wrong")
    assert "No changes." in odfbuild.ok("plan").out


def test_python_runs_unit_tests(tiny: Tiny, odfbuild: Program) -> None:
    put(tiny, TEN_TIMES, WRONG)
    with package.Project(tiny.root) as project:
        passed, failed = project.test("derived", unit=True)
    assert passed.passed
    assert failed.difference is not None
    assert failed.difference.missing == ({"op": "+A", "id": 7, "value": 70},)


def test_editors_get_the_schema_of_tests(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("validate")
    written = tiny.root / ".odfbuild/schemas/UnitTests.json"
    assert json.loads(written.read_text()) == odfbuild.ok("schema", "unit-tests").data
    assert written.read_text() == (Path(__file__).parents[2] / "schemas/UnitTests.json").read_text()
