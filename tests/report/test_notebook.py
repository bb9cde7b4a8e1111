"""What notebooks show: HTML without scripts, in which nothing of the data is markup."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild import Project
from odfbuild.inspect.verify.provenance import BlockRecords, TracedRecords
from odfbuild.odf.model import SourceState
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.report.notebook import MOST, graph_html, records_html
from odfbuild.report.records.provenance_html import provenance_fragment, provenance_page
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

COMPLAINT = re.compile(r"<script|onclick|javascript:|<link|src=", re.IGNORECASE)
BLOCK = Multihash.parse("f1620" + "ab" * 32)


def block(**fields: object) -> BlockRecords:
    made = {"block": BLOCK, "sequence_number": 3, "system_time": Timestamp(0), "records": ((0, 0),)}
    return BlockRecords(**{**made, **fields})  # type: ignore[arg-type]


def record(**values: object) -> pa.Table:
    return pa.table({name: [value] for name, value in {"offset": 0, "op": 0, **values}.items()})


TREE = TracedRecords(
    dataset="derived",
    records=((0, 0),),
    pieces=(block(query=1),),
    sample=record(value="<script>alert(1)</script>"),
    inputs=(
        TracedRecords(
            dataset="root",
            records=((0, 0), (4, 4)),
            pieces=(
                block(
                    source="data/*.csv",
                    state=SourceState(source_name="s", kind="odf/name", value="1.csv"),
                ),
            ),
            sample=record(id=7, secret="xyzzy"),
        ),
    ),
)


def test_provenance_is_drawn_down_to_the_file_and_escapes_what_it_shows() -> None:
    shown = provenance_fragment([TREE])
    assert not COMPLAINT.search(shown.replace("&lt;script&gt;", ""))
    assert "&lt;script&gt;alert(1)" in shown
    assert re.findall(r"<title>(.*?)</title>", shown) == [
        "data/1.csv: read by root",
        "root: 2 records: 0, 4",
        "derived: record 0",
    ]
    for text in ("by the query of block #1", "the first 1 record:", ">7<", ">xyzzy<"):
        assert text in shown


def test_pages_show_only_columns_that_are_let_out() -> None:
    shown = provenance_fragment([TREE], lambda name, columns: ["id"] if name == "root" else [])
    assert ">7<" in shown
    assert "xyzzy" not in shown and "alert" not in shown


def test_a_page_of_provenance_stands_alone_and_is_readable_in_dark_and_light() -> None:
    page = provenance_page([TREE])
    assert "color-scheme: light dark" in page
    assert "default-src 'none'" in page
    assert provenance_page([])  # nothing was traced


def test_an_answer_shows_its_first_rows_and_how_many_there_are() -> None:
    shown = records_html(pa.table({"n": range(MOST + 5)}), "Spark SQL")
    assert shown.count("<tr>") == MOST + 1
    assert "55 rows" in shown and "5 more rows not shown" in shown and "Spark SQL" in shown


def test_values_of_the_interface_show_themselves_in_notebooks(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.derive("other", "SELECT event_time, id, value * 2 AS value FROM source")
    tiny.derive("wrong", "SELECT event_time, nothing FROM source")
    project = Project(tiny.root)
    shown = {
        "project": project._repr_html_(),
        "dataset": project["derived"]._repr_html_(),
        "plan": project.plan()._repr_html_(),
        "graph": project.graph()._repr_html_(),
        "verdict": project.verify(integrity=True)._repr_html_(),
    }
    assert not any(map(COMPLAINT.search, shown.values()))
    assert "never applied" in shown["project"] and "<svg" in shown["project"]
    assert "value (int64)" in shown["dataset"] and "records 0 to 2" in shown["dataset"]
    assert "nothing" in shown["plan"] and "refused because" in shown["plan"]
    assert shown["graph"].count("<rect") == 4
    assert "All blocks and objects are intact." in shown["verdict"]


def test_what_verification_found_is_a_table(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (file,) = (tiny.root / "chains/root/data").iterdir()
    file.chmod(0o644)
    file.write_bytes(b"broken")
    shown = Project(tiny.root).verify(integrity=True)._repr_html_()
    assert "<th>finding</th>" in shown and ">root<" in shown


@pytest.mark.parametrize("size", [0, 1000])
def test_graphs_that_are_too_large_are_not_drawn(size: int) -> None:
    from odfbuild.plan.graph.dag import Graph

    shown = graph_html(Graph({f"d{n}": () for n in range(size)}))
    assert "<svg" not in shown
    assert f"{size:,} datasets" in shown
    assert len(shown) < 2000


def test_nothing_is_loaded_for_notebooks_before_they_ask() -> None:
    import subprocess
    import sys

    code = (
        "import sys, odfbuild; odfbuild.Project; print('odfbuild.report.notebook' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", Path(code)
