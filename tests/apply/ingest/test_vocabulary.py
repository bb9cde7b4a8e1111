"""Datasets whose system columns have other names."""

from __future__ import annotations

from tests.apply.in_process import Program

_VOCAB = """\
    - kind: SetVocab
      operationTypeColumn: change
      systemTimeColumn: known_since
"""


def test_operations_are_shown_by_sign_whatever_their_column_is_called(odfbuild: Program) -> None:
    file = odfbuild.root / "datasets" / "root.yaml"
    file.write_text(file.read_text() + _VOCAB)
    odfbuild.apply()
    for arguments in (("tail", "root"), ("tail", "root", "--as-of", "2100-01-01T00:00:00Z")):
        lines = odfbuild.ok(*arguments).out.splitlines()
        assert lines[0].split()[:3] == ["offset", "change", "known_since"]
        assert [line.split()[1] for line in lines[1:]] == ["+A", "+A", "+A"]
    assert {each["change"] for each in odfbuild.ok("tail", "root", "--json").data} == {"+A"}
    origin = odfbuild.ok("provenance", "root", "1").out
    assert "change" in origin.lower()
    assert "+A" in origin
    assert "known_since" not in origin.lower()
