"""Encoding attributes of columns that say nothing about them are refused where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.real import NO_JVM, in_pipe
from tests.project.write_project import root_yaml

PROJECT = "kind: Project\nversion: 1\ncontent:\n  name: p\n"
BUFFER = "arrow.apache.org/bufferEncoding: {kind: Contiguous}"


def validate(root: Path, columns: str) -> str:
    """What `validate` says of a source with these columns, of an ODF schema."""
    (root / "datasets").mkdir()
    (root / "odfbuild.yaml").write_text(PROJECT)
    text = root_yaml("cities").replace(
        "Csv\n        header: true\n        schema:\n"
        "          - id BIGINT\n          - city STRING\n",
        f"NdJson\n        schema:\n          fields:\n{columns}",
    )
    (root / "datasets" / "cities.yaml").write_text(text)
    said = in_pipe(root, ["validate"], NO_JVM)
    assert said.code == (1 if "error[" in said.text else 0), said.text
    return said.text


@pytest.mark.parametrize(
    ("kind", "attribute", "said"),
    [
        ("Int32", BUFFER, "is for String, Binary, List, and 'x' is Int32"),
        ("{kind: Option, inner: {kind: Int32}}", BUFFER, "and 'x' is Int32"),
        ("String", "arrow.apache.org/dateEncoding: {unit: Day}", "is for Date, and 'x' is String"),
        ("Date", "arrow.apache.org/decimalEncoding: {bitWidth: 64}", "is for Decimal, and 'x' is"),
        ("{kind: Binary, fixedLength: 4}", BUFFER, "not for values of a fixed length"),
        ("String", "arrow.apache.org/bufferEncoding: {kind: Nothing}", "not a valid"),
    ],
)
def test_an_encoding_that_a_column_does_not_have_is_refused_with_its_place(
    tmp_path: Path, kind: str, attribute: str, said: str
) -> None:
    column = f"            - name: x\n              type: {kind}\n              extra:\n"
    text = validate(tmp_path, f"{column}                {attribute}\n")
    assert "error[E0532]" in text
    assert said in text
    assert "--> datasets/cities.yaml:19:17" in text


def test_a_member_of_a_struct_is_looked_at_too_and_encodings_that_fit_are_taken(
    tmp_path: Path,
) -> None:
    columns = (
        f"            - {{name: t, type: String, extra: {{{BUFFER}}}}}\n"
        "            - name: s\n"
        "              type:\n"
        "                kind: Struct\n"
        "                fields:\n"
        f"                  - {{name: m, type: Int64, extra: {{{BUFFER}}}}}\n"
    )
    text = validate(tmp_path, columns)
    assert text.count("error[") == 1
    assert "and 'm' is Int64" in text
