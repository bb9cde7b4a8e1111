"""What `personal` says is checked before anything is committed."""

from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.errors import Errors, OdfbuildError
from odfbuild.survey.definitions import look_at_definitions
from odfbuild.survey.validation import all_that_is_wrong
from tests.personal.shop import PERSONAL, Shop


def shop(tmp_path: Path, personal: str = PERSONAL, **derived: str) -> Shop:
    made = Shop.fresh(tmp_path / "shop", personal=True, derived=derived)
    made.arrive(1)
    file = made.root / "odfbuild.yaml"
    file.write_text(file.read_text().replace(PERSONAL, personal))
    return made


def wrong(made: Shop) -> list[OdfbuildError]:
    return all_that_is_wrong(look_at_definitions(made.root))


def refused(made: Shop) -> dict[str, str]:
    plan = Project(made.root).plan()
    return {each.name: each.refusal.code for each in plan.datasets if each.refusal is not None}


def entry(text: str) -> str:
    return f"  personal:\n    - {text}\n"


def test_the_shop_is_right(tmp_path: Path) -> None:
    assert wrong(Shop.fresh(tmp_path / "shop", personal=True)) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{match: [customers], columns: [email]}", "E1601"),
        ("{match: [customers], columns: [email], subject: email}", "E1601"),
        ("{match: [customers], columns: [mail], subject: customer_id}", "E1601"),
        ("{match: [customers], columns: [email], subject: person}", "E1602"),
        ("{match: [orders], columns: [amount], subject: customer_id}", "E1603"),
        ("{match: [customers], columns: [email], subject: event_time}", "E1603"),
        ("{match: [nobody], columns: [email], subject: customer_id}", "E0151"),
    ],
)
def test_an_entry_that_cannot_be_is_told_with_its_place(
    tmp_path: Path, text: str, code: str
) -> None:
    made = shop(tmp_path, entry(text))
    try:
        (error,) = wrong(made)
    except Errors as errors:  # what is wrong by itself stops every command
        (error,) = errors.errors
    assert error.code == code
    assert error.location is not None and error.location.file == "odfbuild.yaml"
    assert error.location.line is not None and error.help


def test_a_key_is_not_personal(tmp_path: Path) -> None:
    made = shop(tmp_path, entry("{match: [orders], columns: [address], subject: customer_id}"))
    file = made.root / "datasets" / "orders.yaml"
    file.write_text(file.read_text().replace("primaryKey: [order_id]", "primaryKey: [address]"))
    assert [each.code for each in wrong(made)] == ["E1611"]
    assert refused(made) == {"orders": "E1611"}


def test_a_column_that_is_made_from_a_personal_one_is_personal_or_disclosed(tmp_path: Path) -> None:
    made = shop(
        tmp_path,
        entry("{match: [customers], columns: [email], subject: customer_id}"),
        leak="SELECT event_time, customer_id, upper(email) AS loud, country FROM customers",
        right="SELECT event_time, customer_id, country FROM customers",
    )
    (error,) = wrong(made)
    assert error.code == "E1610"
    assert "customers.email → leak.loud" in error.message
    assert error.help is not None and "disclose: [loud]" in error.help
    assert refused(made) == {"leak": "E1610"}
    file = made.root / "odfbuild.yaml"
    file.write_text(file.read_text() + "    - {match: [leak], disclose: [loud]}\n")
    assert wrong(made) == [] and refused(made) == {}


def test_of_a_query_that_cannot_be_followed_every_column_counts(tmp_path: Path) -> None:
    made = shop(
        tmp_path,
        entry("{match: [customers], columns: [email], subject: customer_id}"),
        turned="SELECT * FROM customers PIVOT (count(1) FOR country IN ('c0', 'c1'))",
    )
    assert "turned" in refused(made)
    file = made.root / "odfbuild.yaml"
    file.write_text(file.read_text() + '    - {match: [turned], disclose: ["*"]}\n')
    assert refused(made) == {}


def test_settings_that_are_wrong_by_themselves_stop_every_command(tmp_path: Path) -> None:
    made = shop(tmp_path, entry("{match: [customers], columns: [email]}"))
    with pytest.raises(Errors) as caught:
        Project(made.root)
    assert "E1601 odfbuild.yaml:" in str(caught.value)


def test_a_program_beside_odfbuild_does_not_compute_personal_columns(tmp_path: Path) -> None:
    mail = "SELECT event_time, customer_id, email FROM customers"
    made = shop(tmp_path, mail=mail)
    file = made.root / "odfbuild.yaml"
    image = f"ghcr.io/acme/engine@sha256:{'a' * 64}"
    file.write_text(f"{file.read_text()}  engines: {{datafusion: {{image: {image}}}}}\n")
    query = made.root / "datasets" / "mail.yaml"
    query.write_text(query.read_text().replace("engine: spark", "engine: datafusion"))
    assert refused(made)["mail"] == "E1608"
