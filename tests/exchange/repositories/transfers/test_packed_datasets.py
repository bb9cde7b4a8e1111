"""Peers see the plain layout of the specification, wherever the blocks of a chain are."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest

from odfbuild import Project
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.exchange.repositories.serving import ALICE, served
from tests.store.chains import info

NOW = Timestamp.parse("2030-01-01T00:00:00Z")
ACCESS = (
    "kind: Machine\nversion: 1\ncontent:\n  serve:\n    access:\n"
    f"      - name: alice\n        token: {ALICE}\n        read: ['*']\n        write: ['*']\n"
)
BLOCKS = 1_060


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A project with a long chain in packs, and `plain/` as a peer of the specification has it."""
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        root = tmp_path_factory.mktemp("packed")
        tiny = Tiny.fresh(root / "theirs")
        with (tiny.root / "odfbuild.yaml").open("a") as config:
            config.write(
                "  storage: ../lake\n  repositories: {out: {url: ../out}, hub: {url: ../hub}}\n"
            )
        project = Project(tiny.root)
        project.apply()
        store = project.workspace().dataset("root")
        head = store.head()
        assert head is not None
        number = store.read_block(head).sequence_number + 1
        store.append(head, [info(str(each)) for each in range(number, BLOCKS)], NOW)
        shutil.copytree(tiny.root / "chains" / "root", root / "plain")
        project.move_chains("storage")
    assert len(list((root / "lake" / "packs").iterdir())) == 2
    return tiny


def layout(dataset: Path) -> dict[str, bytes]:
    """What the specification has of a dataset."""
    return {
        each.relative_to(dataset).as_posix(): each.read_bytes()
        for kind in ("refs/head", "blocks/*", "data/*", "checkpoints/*")
        for each in dataset.glob(kind)
    }


@pytest.fixture
def odfbuild(
    packed: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    share(PlainEngine(), monkeypatch)
    return Program(packed.root, monkeypatch, capsys)


def test_push_writes_the_plain_layout(packed: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("push", "root", "--to", "out")
    out, plain = layout(packed.root.parent / "out" / "root"), layout(packed.root.parent / "plain")
    assert len([name for name in plain if name.startswith("blocks/")]) == BLOCKS
    assert out == plain


def test_serve_gives_each_block_as_it_was_committed(packed: Tiny) -> None:
    shutil.rmtree(packed.root / ".odfbuild")
    plain = layout(packed.root.parent / "plain")
    headers = {"Authorization": f"Bearer {ALICE}"}
    with (
        served(packed.root, access=ACCESS) as server,
        httpx.Client(headers=headers, trust_env=False) as client,
    ):
        asked = [name for name in sorted(plain) if not name.startswith("blocks/")]
        asked += [name for name in sorted(plain) if name.startswith("blocks/")][::20]
        for name in asked:
            answer = client.get(server.url(f"root/{name}"))
            assert answer.status_code == 200, name
            assert answer.content == plain[name], name


def test_a_project_with_chains_in_the_storage_pulls_and_takes_pushes(
    packed: Tiny, odfbuild: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.ok("push", "root", "--to", "out")
    ours = tmp_path / "ours"
    (ours / "datasets").mkdir(parents=True)
    (ours / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent:\n  name: ours\n  storage: lake\n  chains: storage\n"
        f"  repositories: {{out: {{url: '{packed.root.parent / 'out'}'}}}}\n"
        "  external: {theirs: out/root}\n"
    )
    we = Program(ours, monkeypatch, odfbuild.capsys)
    we.ok("pull")
    assert list((ours / "chains").glob("**/blocks/f1620*")) == []
    assert len(list((ours / "lake" / "packs").iterdir())) == 2
    assert verify_integrity(Project(ours).workspace()) == ()
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent:\n  name: hub\n  storage: lake\n  chains: storage\n"
    )
    with served(hub, access=ACCESS) as server:
        text = (packed.root / "odfbuild.yaml").read_text()
        address = f"odf+{server.address}"
        changed = text.replace("{url: ../hub}", f"{{url: '{address}', token: {ALICE}}}")
        (packed.root / "odfbuild.yaml").write_text(changed)
        try:
            odfbuild.ok("push", "root", "--to", "hub")
        finally:
            (packed.root / "odfbuild.yaml").write_text(text)
    assert list((hub / "chains").glob("**/blocks/f1620*")) == []
    assert Project(hub).workspace().heads() == {
        "root": layout(packed.root.parent / "plain")["refs/head"]
    }
    assert verify_integrity(Project(hub).workspace()) == ()
