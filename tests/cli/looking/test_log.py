"""`log` names the datasets that blocks are about."""

from __future__ import annotations

import json
import re
import shutil

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


def test_names_stand_behind_identities_where_the_dataset_is_here(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    said = odfbuild.ok("log", "derived").out
    assert re.search(r"    - datasetRef: did:odf:\w+ \(root\)\n      alias: source\n", said)
    assert re.search(r"    - datasetId: did:odf:\w+ \(root\)\n", said)
    assert re.search(r"Event: Seed\n  datasetId: did:odf:\w+ \(derived\)\n", said)
    shutil.rmtree(tiny.root / "chains" / "root")
    said = odfbuild.ok("log", "derived").out
    assert re.search(r"    - datasetRef: did:odf:\w+\n", said)
    # JSON has the form of the manifests.
    assert "(derived)" not in json.dumps(odfbuild.ok("log", "derived", "--json").data)


def test_a_line_for_each_block(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    lines = odfbuild.ok("log", "derived", "--oneline").out.splitlines()
    blocks = odfbuild.ok("log", "derived", "--json").data
    assert [line.split()[0] for line in lines] == [each["blockHash"][-8:] for each in blocks]
    assert [line.split(" ", 3)[3].strip() for line in lines] == [
        "ExecuteTransform: 3 records",
        "SetDataSchema",
        "SetTransform: root",
        "Seed",
    ]
    assert len(odfbuild.ok("log", "derived", "--oneline", "-n", "2").out.splitlines()) == 2
    for other in ("--json", "--vintage"):
        assert odfbuild("log", "derived", "--oneline", other).code == 64
