"""`kill -9` before every single change of a file, then a rerun: the same records and chain."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild.apply.collect import collect
from odfbuild.engine.slice import dataset_schema
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.model import SetDataSchema
from odfbuild.odf.schema.arrow_schema import to_odf
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.odf.yaml_form import to_data
from odfbuild.odf.yaml_text import dump_yaml
from tests.apply.killer import Killer
from tests.apply.plain_engine import RESULT
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.long

KILLED = -9
STORAGE = "store"


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as started:
        yield started


def copy(tiny: Tiny, to: Path) -> Tiny:
    shutil.copytree(tiny.root, to)
    return Tiny(to)


def creation(killer: Killer, root: Path) -> Tiny:
    """Nothing is there yet: root and derivative come into being."""
    return Tiny.fresh(root)


def append(killer: Killer, root: Path) -> Tiny:
    """Another file came."""
    tiny = creation(killer, root)
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.arrive(2)
    return tiny


def new_query(killer: Killer, root: Path) -> Tiny:
    """Another file and another query: two blocks of the derivative in one transaction."""
    tiny = append(killer, root)
    tiny.derive("derived", QUERY.replace("10", "100"))
    return tiny


def rebuild(killer: Killer, root: Path) -> Tiny:
    """Another query, and all records are to be computed again by it."""
    tiny = creation(killer, root)
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.derive("derived", QUERY.replace("10", "100"))
    return tiny


def two_files(killer: Killer, root: Path) -> Tiny:
    """Two files came at once: two blocks of the root, one after the other."""
    tiny = append(killer, root)
    (tiny.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,5,5\n")
    return tiny


def storage(killer: Killer, root: Path) -> Tiny:
    """The project has a storage, and another file came."""
    tiny = creation(killer, root)
    with (root / "odfbuild.yaml").open("a") as config:
        config.write(f"  storage: {STORAGE}\n")
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.arrive(2)
    return tiny


def checkpoint(killer: Killer, root: Path) -> Tiny:
    """A step that drops all records, while another input promises nothing: only a checkpoint."""
    tiny = creation(killer, root)
    schema = SetDataSchema(schema=to_odf(dataset_schema(RESULT, Vocabulary())))
    silent = {"name": "silent", "kind": "Root", "metadata": [to_data(schema)]}
    manifest = {"kind": "DatasetSnapshot", "version": 1, "content": silent}
    (tiny.root / "datasets" / "silent.yaml").write_text(dump_yaml(manifest))
    (tiny.root / "datasets" / "derived.yaml").unlink()
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.derive("derived", "SELECT event_time, id, value FROM source WHERE id > 100")
    file = tiny.root / "datasets" / "derived.yaml"
    inputs = "- datasetRef: root\n          alias: source\n"
    assert inputs in file.read_text()
    more = f"{inputs}        - datasetRef: silent\n          alias: silent\n"
    file.write_text(file.read_text().replace(inputs, more))
    return tiny


PREPARED = [creation, append, new_query, two_files, checkpoint, rebuild, storage]


@pytest.mark.parametrize("prepare", PREPARED, ids=lambda f: f.__name__)
def test_a_run_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, prepare: Callable[[Killer, Path], Tiny]
) -> None:
    before = prepare(killer, tmp_path / "before")
    undisturbed = copy(before, tmp_path / "undisturbed")
    arguments = ["apply", "-y", *(["--allow", "rebuild:derived"] if prepare is rebuild else [])]
    code, steps = killer.run(undisturbed.root, *arguments)
    assert code == 0
    expected = undisturbed.state()
    collected(undisturbed)
    kinds = {name: now[0] for name, now in expected.items()}
    done = ("AddData", "ExecuteTransform")
    assert all(of[-1] in done for name, of in kinds.items() if name != "silent")
    assert steps >= len(["object", "block", "new block", "head", "new head"])
    expected_files = names(undisturbed)
    assert bool(expected_files["checkpoints"]) is (prepare is checkpoint)
    for kill_at in range(steps):
        tiny = copy(before, tmp_path / str(kill_at))
        assert killer.run(tiny.root, *arguments, kill_at=kill_at) == (KILLED, kill_at)
        _still_readable(tiny)
        assert killer.run(tiny.root, *arguments)[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.state() == expected, f"killed at step {kill_at}"
        collected(tiny)
        assert tiny.state() == expected
        assert names(tiny) == expected_files
        shutil.rmtree(tiny.root)


def collected(tiny: Tiny) -> None:
    """Collect all garbage at once; what is left is whole."""
    found = collect(tiny.workspace(), None, before=time.time() + 60, dry_run=False)
    assert (found.damaged, found.held) == ((), ())
    assert verify_integrity(tiny.workspace()) == ()


def names(tiny: Tiny) -> dict[str, int]:
    """How many files of each kind there are; nothing is half written, and no key is left over."""
    folders = ("blocks", "data", "checkpoints")
    found = {kind: len(list((tiny.root / "chains").glob(f"*/{kind}/*"))) for kind in folders}
    keys = [each for each in (tiny.root / ".odfbuild-keys").iterdir() if each.name[0] != "."]
    assert len(keys) == len(tiny.workspace().aliases())
    assert list((tiny.root / "chains").rglob(".pending-*")) == []
    if (tiny.root / STORAGE).exists():
        here = {file.name for file in (tiny.root / "chains").glob("*/data/*")}
        there = {file.name for file in (tiny.root / STORAGE / "data").glob("f1620*")}
        # A killed run may have left what no block came to refer to.
        assert here <= there
    return found


def _still_readable(tiny: Tiny) -> None:
    """Whoever reads between the two runs sees whole chains only."""
    tiny.state()
