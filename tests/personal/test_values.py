"""Values of persons are encrypted by keys of theirs, and by nobody else's read."""

import os
from collections.abc import Collection

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.errors import PersonalDataError
from odfbuild.odf.identity import DatasetId
from odfbuild.records.personal.values import PREFIX, hiding, opening, pseudonym, sealing
from odfbuild.store.personal import Personal, PersonalColumns

ONE, OTHER = DatasetId(bytes([1] * 32)), DatasetId(bytes([2] * 32))


class Keys:
    """Keys in memory, by the interface of `subject_keys`."""

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}
        self.gone: set[str] = set()

    def keys(self, subjects: Collection[str]) -> dict[str, bytes]:
        return {each: self.known[each] for each in subjects if each in self.known}

    def ensure(self, subjects: Collection[str]) -> dict[str, bytes]:
        for each in subjects:
            if each not in self.gone:
                self.known.setdefault(each, os.urandom(64))
        return self.keys(subjects)

    def erased(self, subjects: Collection[str]) -> frozenset[str]:
        return frozenset(self.gone & {*subjects})

    def destroy(self, subjects: Collection[str]) -> int:
        self.gone.update(subjects)
        return sum(self.known.pop(each, None) is not None for each in subjects)


def personal(keys: Keys | None) -> Personal:
    return Personal(lambda _: {"email": "who"}, lambda: keys)


def scope(identity: DatasetId = ONE, **subjects: str) -> PersonalColumns:
    return PersonalColumns("customers", identity, subjects or {"email": "who"})


def batch(*rows: tuple[object, str | None], kind: pa.DataType | None = None) -> pa.RecordBatch:
    who = pa.array([row[0] for row in rows], kind)
    return pa.RecordBatch.from_pydict(
        {"who": who, "email": pa.array([row[1] for row in rows], pa.string())}
    )


ROWS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.text(max_size=20)), max_size=30)


@given(ROWS)
def test_what_was_encrypted_is_decrypted(rows: list[tuple[str, str | None]]) -> None:
    rights = personal(Keys())
    before = batch(*rows, kind=pa.string())
    sealed = sealing(rights, scope())(before)
    assert opening(rights, scope())(sealed).to_pydict() == before.to_pydict()
    plain = {text for _, text in rows if text}
    assert all(text.startswith(PREFIX) for text in sealed["email"].to_pylist() if text is not None)
    assert plain.isdisjoint(sealed["email"].to_pylist())


def test_equal_values_of_a_subject_are_equal_and_those_of_others_are_not() -> None:
    rights = personal(Keys())
    seal = sealing(rights, scope())
    first = seal(batch((1, "a@x"), (1, "a@x"), (2, "a@x"), (1, None)))["email"].to_pylist()
    again = sealing(rights, scope())(batch((1, "a@x")))["email"].to_pylist()
    assert first[0] == first[1] == again[0] != first[2]
    assert first[3] is None


def test_a_subject_is_the_same_as_text_and_as_a_number_of_any_size() -> None:
    rights = personal(Keys())
    texts = [
        sealing(rights, scope())(batch((who, "a"), kind=kind))["email"].to_pylist()[0]
        for who, kind in (("7", pa.string()), (7, pa.int64()), (7, pa.int32()))
    ]
    assert len({*texts}) == 1


@pytest.mark.parametrize("attack", ["column", "dataset", "subject", "cut", "byte", "key"])
def test_a_value_in_another_place_is_an_error_and_never_shown(attack: str) -> None:
    keys = Keys()
    rights = personal(keys)
    (value,) = sealing(rights, scope())(batch((1, "alice@example.org")))["email"].to_pylist()
    keys.ensure(["2"])
    who, at = 1, scope()
    if attack == "column":
        at = scope(ONE, phone="who")
    elif attack == "dataset":
        at = scope(OTHER)
    elif attack == "subject":
        who = 2
    elif attack == "cut":
        value = value[:-7]
    elif attack == "byte":
        value = value[:-1] + ("A" if value[-1] != "A" else "E")
        value = value[:20] + ("A" if value[20] != "A" else "B") + value[21:]
    else:
        keys.known["1"] = os.urandom(64)
    given = batch((who, value))
    if attack == "column":
        given = given.rename_columns(["who", "phone"])
    with pytest.raises(PersonalDataError) as caught:
        opening(rights, at)(given)
    assert caught.value.code == "E1606"
    assert "alice" not in str(caught.value) + str(caught.value.notes)
    assert value not in str(caught.value) + str(caught.value.notes)


def test_without_the_key_of_its_subject_a_value_is_null() -> None:
    keys = Keys()
    rights = personal(keys)
    sealed = sealing(rights, scope())(batch((1, "a"), (2, "b")))
    keys.destroy(["1"])
    assert opening(rights, scope())(sealed)["email"].to_pylist() == [None, "b"]
    later = sealing(rights, scope())(batch((1, "new"), (2, "b")))["email"].to_pylist()
    assert later[0] is None
    assert later[1] == sealed["email"].to_pylist()[1]


def test_a_record_of_an_erased_subject_is_taken_back_as_it_was_committed() -> None:
    keys = Keys()
    rights = personal(keys)
    sealed = sealing(rights, scope())(batch((1, "a"), (2, "b")))
    keys.destroy(["1"])
    kept = opening(rights, scope(), keep=True)(sealed)
    assert kept["email"].to_pylist() == [sealed["email"].to_pylist()[0], "b"]
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 1, 0], pa.int32()),
            pa.array([1, 2, 1]),
            pa.array([*kept["email"].to_pylist(), "x"]),
        ],
        ["op", "who", "email"],
    )
    again = sealing(rights, scope(), "op")(rows)["email"].to_pylist()
    assert again == [*sealed["email"].to_pylist(), None]


def test_a_value_that_was_committed_before_stays_as_it_is() -> None:
    rights = personal(Keys())
    assert opening(rights, scope())(batch((1, "old")))["email"].to_pylist() == ["old"]


def test_a_plain_value_that_looks_encrypted_is_encrypted_too() -> None:
    rights = personal(Keys())
    sealed = sealing(rights, scope())(batch((1, f"{PREFIX}abc")))
    assert sealed["email"].to_pylist() != [f"{PREFIX}abc"]
    assert opening(rights, scope())(sealed)["email"].to_pylist() == [f"{PREFIX}abc"]


def test_a_value_without_a_subject_is_an_error() -> None:
    with pytest.raises(PersonalDataError) as caught:
        sealing(personal(Keys()), scope())(batch((None, "a"), (1, "b")))
    assert caught.value.code == "E1605"
    sealing(personal(Keys()), scope())(batch((None, None), (1, "b")))


def test_columns_of_other_types_are_an_error() -> None:
    rows = pa.RecordBatch.from_pydict({"who": [1], "email": [2]})
    with pytest.raises(PersonalDataError) as caught:
        sealing(personal(Keys()), scope())(rows)
    assert caught.value.code == "E1603"
    rows = pa.RecordBatch.from_pydict({"email": ["a"]})
    with pytest.raises(PersonalDataError) as caught:
        sealing(personal(Keys()), scope())(rows)
    assert caught.value.code == "E1602"


def test_without_keys_nothing_is_encrypted_or_decrypted() -> None:
    for make in (sealing, opening):
        with pytest.raises(PersonalDataError) as caught:
            make(personal(None), scope())
        assert caught.value.code == "E1604"


def test_readers_without_rights_see_pseudonyms_or_nothing() -> None:
    rights = personal(Keys())
    sealed = sealing(rights, scope())(batch((1, "a"), (1, "a"), (2, "a"), (1, None)))
    sealed = pa.RecordBatch.from_pydict(
        {"who": [1, 1, 2, 1, 3], "email": [*sealed["email"].to_pylist()[:4], "plain"]}
    )
    seen = hiding("pseudonym", scope())(sealed)["email"].to_pylist()
    assert seen[0] == seen[1] != seen[2]
    assert seen[0] == pseudonym(sealed["email"].to_pylist()[0])
    assert seen[3] is None and seen[4] is None
    assert hiding("empty", scope())(sealed)["email"].to_pylist() == [None] * 5
