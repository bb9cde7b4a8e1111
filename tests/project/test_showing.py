"""Which records may leave the machine."""

from __future__ import annotations

from odfbuild.declared_settings import read
from odfbuild.project.settings.showing import Showing, Shown


def showing(*entries: dict[str, object]) -> Showing:
    return Showing(read(tuple[Shown, ...], list(entries)))


def test_nothing_is_shown_unless_an_entry_says_so() -> None:
    assert showing().of("a") is None
    assert showing({"match": ["b*"]}).of("a") is None


def test_of_several_entries_that_match_the_last_one_counts_alone() -> None:
    found = showing(
        {"match": ["us.*"], "columns": {"exclude": ["ssn"]}},
        {"match": ["us.secret"], "samples": False},
        {"match": ["us.open"], "columns": {"include": ["id", "v*"]}},
    )
    assert found.of("us.secret") is None
    first, last = found.of("us.people"), found.of("us.open")
    assert first is not None and first.of(["id", "ssn", "name"]) == ("id", "name")
    assert last is not None and last.of(["id", "ssn", "Value"]) == ("id", "Value")


def test_case_hides_nothing_and_shows_nothing() -> None:
    found = showing({"match": ["US.*"], "columns": {"exclude": ["SSN"]}}).of("us.People")
    assert found is not None and found.of(["ssn", "Ssn", "name"]) == ("name",)


def test_exclusion_goes_before_inclusion() -> None:
    columns = {"include": ["a*"], "exclude": ["*b"]}
    found = showing({"match": ["*"], "columns": columns}).of("x")
    assert found is not None and found.of(["a", "ab", "b"]) == ("a",)
