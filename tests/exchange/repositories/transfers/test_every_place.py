"""Two projects that share nothing but a repository, of every kind: what travels is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odfbuild.store.dataset import DatasetStore
from tests.apply.in_process import Program, Said
from tests.exchange.repositories.chains import (
    NOW,
    commit,
    create,
    files,
    grow,
    info,
    with_checkpoints,
    workspace,
)
from tests.exchange.repositories.serving import ALICE, served
from tests.servers.objects import BUCKET, s3_endpoint
from tests.servers.web import nginx


@dataclass(frozen=True)
class Place:
    """A repository: where it is pushed to and pulled from, as settings of a project."""

    push: str
    pull: str

    @property
    def is_writable(self) -> bool:
        """Whether those who read it can write to it, too."""
        return self.push == self.pull


@pytest.fixture(params=["folder", "s3", "nginx", "serve"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    match request.param:
        case "folder":
            yield Place("{url: ../published}", "{url: ../published}")
        case "s3":
            with s3_endpoint():
                yield Place(*[f"{{url: 's3://{BUCKET}/published'}}"] * 2)
        case "nginx":
            with nginx(tmp_path / "web") as server:
                yield Place(f"{{url: {server.www}/all}}", f"{{url: {server.url('all')}}}")
        case "serve":
            with served(tmp_path / "hub") as server:
                yield Place(*[f"{{url: {server.address}, token: '${{{{ env.ALICE }}}}'}}"] * 2)


@dataclass(frozen=True)
class Side:
    """A project that knows the repository as `acme`."""

    program: Program

    @classmethod
    def made(
        cls,
        root: Path,
        repository: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> Side:
        root.mkdir(exist_ok=True)
        (root / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: side\n"
            f"  repositories:\n    acme: {repository}\n"
        )
        monkeypatch.setenv("ALICE", ALICE)
        return cls(Program(root, monkeypatch, capsys))

    def store(self, name: str) -> DatasetStore:
        return workspace(self.program.root).dataset(name)

    def does(self, *arguments: str) -> dict[str, tuple[str, int]]:
        """Pull or push; the status and the new blocks of each dataset."""
        said = self.program.ok(*arguments, "--json")
        return {
            each["name"]: (each["status"], each["blocks"])
            for each in json.loads(said.out)["datasets"]
        }

    def fails(self, *arguments: str) -> Said:
        said = self.program(*arguments)
        assert said.code != 0
        return said


@pytest.fixture
def sides(
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[Side, Side]:
    return (
        Side.made(tmp_path / "owner", place.push, monkeypatch, capsys),
        Side.made(tmp_path / "reader", place.pull, monkeypatch, capsys),
    )


def test_what_is_pulled_from_anywhere_is_what_its_owner_has(
    sides: tuple[Side, Side], place: Place
) -> None:
    """Must show 2 and scenarios 1, 3, 5, 18 to 21, 33, 34 and 48, through every protocol."""
    owner, reader = sides
    space = workspace(owner.program.root)
    create(space, "seed")
    commit(create(space, "old"), [info("written long ago")], version=2)
    with_checkpoints(create(space, "checkpoints"))
    grow(create(space, "slices"), 0)
    names = ("checkpoints", "old", "seed", "slices")
    new = {name: ("new", blocks) for name, blocks in zip(names, (5, 2, 1, 3), strict=True)}
    assert owner.does("push", "--to", "acme") == new
    pulled = reader.does("pull", *(f"acme/{name}" for name in names))
    assert pulled == {f"acme/{name}": found for name, found in new.items()}
    for name in names:
        assert files(reader.store(f"acme/{name}")) == files(owner.store(name))
    assert reader.program.ok("verify", "--integrity")
    assert set(owner.does("push", "--to", "acme").values()) == {("up-to-date", 0)}
    assert set(reader.does("pull").values()) == {("up-to-date", 0)}

    grow(owner.store("slices"), 3)
    owner.store("old").append(owner.store("old").head(), (info("new"), info("newer")), NOW)
    assert owner.does("push", "old", "slices", "--to", "acme") == {
        "old": ("updated", 2),
        "slices": ("updated", 1),
    }
    moved = {name: found for name, found in reader.does("pull").items() if found[1]}
    assert moved == {"acme/old": ("updated", 2), "acme/slices": ("updated", 1)}
    for name in names:
        assert files(reader.store(f"acme/{name}")) == files(owner.store(name))

    grow(create(workspace(reader.program.root), "answer"), 0)
    if not place.is_writable:
        assert "error[E1014]" in reader.fails("push", "--to", "acme").err
        return
    assert reader.does("push", "--to", "acme") == {"answer": ("new", 3)}
    assert owner.does("pull", "acme/answer") == {"acme/answer": ("new", 3)}
    assert files(owner.store("acme/answer")) == files(reader.store("answer"))


def test_what_must_not_be_published_is_refused_everywhere(
    sides: tuple[Side, Side], place: Place, tmp_path: Path
) -> None:
    """Scenarios 6 to 8, 22, 35 to 38 and 49, through every protocol."""
    owner, reader = sides
    store = create(workspace(owner.program.root), "prices", info("one"))
    owner.does("push", "prices", "--to", "acme")
    reader.does("pull", "prices", "--from", "acme")
    published = store.head()
    store.append(published, (info("two"),), NOW)
    owner.does("push", "prices", "--to", "acme")
    newest = store.head()

    store.swap_head(newest, published)  # as a clone that saw less
    assert "error[E1027]" in owner.fails("push", "prices", "--to", "acme").err
    store.append(published, (info("x"), info("y")), NOW)
    assert "error[E1028]" in owner.fails("push", "prices", "--to", "acme").err
    allowed = owner.does("push", "prices", "--to", "acme", "--allow", "reset:prices")
    assert allowed["prices"][0] == "replaced"
    assert reader.does("pull") == {"prices": ("updated", 2)}
    assert reader.store("prices").head() == store.head()

    stranger = create(workspace(tmp_path / "stranger"), "prices", info("another one"))
    stranger.path.rename(owner.program.root / "chains" / "other")
    for more in ((), ("--allow", "reset:other")):
        said = owner.fails("push", "other", "--to", "acme", "--as", "prices", *more)
        assert "error[E1029]" in said.err
        assert reader.does("pull") == {"prices": ("up-to-date", 0)}
