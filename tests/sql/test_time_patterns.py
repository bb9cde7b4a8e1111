"""Patterns of dates of earlier definitions are told as calls of functions, where one reads them."""

import pytest

from odfbuild.sql.time_patterns import instead_of_format


@pytest.mark.parametrize(
    ("option", "pattern", "call"),
    [
        ("dateFormat", "dd.MM.yyyy", "to_date(COLUMN, 'dd.MM.yyyy')"),
        ("timestampFormat", "yyyy-MM-dd'T'HH:mm", "to_timestamp(COLUMN, \"yyyy-MM-dd'T'HH:mm\")"),
        ("dateFormat", "dd/MM/yy", "to_date(COLUMN, 'dd/MM/yy'); `yy` is a year from 2000 on"),
    ],
)
def test_a_pattern_is_the_argument_of_a_function(option: str, pattern: str, call: str) -> None:
    assert instead_of_format(option, pattern).endswith(f"convert it in `preprocess`: {call}")


@pytest.mark.parametrize(
    ("pattern", "letters"), [("YYYY-ww", "letters `Y` and `w`"), ("yyyy 'w' E", "letter `E`")]
)
def test_letters_that_no_function_reads_are_named(pattern: str, letters: str) -> None:
    assert instead_of_format("dateFormat", pattern).endswith(
        f"Spark reads no texts by the {letters}"
    )
