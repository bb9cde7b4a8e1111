import yaml
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.report.forms.yaml_text import yaml_lines

WORDS = st.text(alphabet="abc xyz019.-_:#'\"{}[]/*,", max_size=12)
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1)
    ),
    max_leaves=8,
)


def test_queries_are_block_text():
    lines = yaml_lines({"query": "SELECT 1\n  FROM x\n", "engine": "spark"})
    assert lines == ["query: |", "  SELECT 1", "    FROM x", "engine: spark"]


def test_short_lists_stay_on_a_line():
    assert yaml_lines({"primaryKey": ["id", "day"]}) == ["primaryKey: [id, day]"]


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, min_size=1))
def test_what_is_shown_is_what_is_there(value):
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value
