"""Ten branches at once on one project, promoted in any order while data arrives on the head.

Each branch is a change of definitions, as a pull request is: queries, descriptions, new datasets.
When it is promoted, its change is merged into the definitions of the head first. What cannot be
promoted because another branch was first is built again. At the end nothing is left to do, all of
history verifies, and each record is there once.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from odfbuild.verify.integrity import verify_integrity
from tests.apply.branching import CountingEngine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.long

TOO_LATE = {"E1122", "E1123", "E1125", "E1126", "E1128"}
"""Why a branch is built again: another one was promoted first."""
QUERY = "SELECT event_time, id, value * {} AS value FROM source"


class Team:
    """A project, its definitions on the head, and the changes of branches."""

    def __init__(self, tiny: Tiny, program: Program, chance: random.Random) -> None:
        self.tiny, self.program, self.chance = tiny, program, chance
        (tiny.root / "datasets" / "derived.yaml").unlink()
        self.main: dict[str, tuple[str, int, str]] = {
            "a": ("root", 2, ""),
            "b": ("a", 3, ""),
            "c": ("b", 5, ""),
            "d": ("root", 7, ""),
        }
        self.changes: dict[str, dict[str, tuple[str, int, str]]] = {}
        self.rebuilt: set[str] = set()
        self.arrived = 0
        self.ids: list[int] = []

    # --- Definitions ---

    def check_out(self, branch: str | None = None) -> None:
        """Write the definitions of the head, or those of a branch."""
        wanted = self.main | self.changes.get(branch or "", {})
        for file in (self.tiny.root / "datasets").glob("[a-z].yaml"):
            file.unlink()
        for file in (self.tiny.root / "datasets").glob("new*.yaml"):
            file.unlink()
        for name, (source, factor, text) in wanted.items():
            self.tiny.derive(name, QUERY.format(factor), source)
            if text:
                self.tiny.describe(name, text)

    def change(self) -> dict[str, tuple[str, int, str]]:
        """A change that somebody asks for."""
        chance, found = self.chance, {}
        for _ in range(chance.choice([1, 1, 2])):
            name = chance.choice("abcd")
            source, factor, text = found.get(name) or self.main[name]
            match chance.choice(["query", "query", "describe", "new"]):
                case "query":
                    found[name] = (source, chance.randint(2, 99), text)
                case "describe":
                    found[name] = (source, factor, f"v{chance.randint(1, 99)}")
                case "new":
                    new = f"new{chance.randint(1, 6)}"
                    found[new] = (name, chance.randint(2, 99), "")
        return found

    # --- What happens ---

    def arrive(self) -> None:
        """Another file, half of whose records are known already."""
        self.arrived += 1
        numbers = [self.arrived * 10 + n for n in range(self.chance.randint(1, 4))]
        again = self.ids[-2:]
        self.ids += numbers
        lines = [f"2024-01-01 00:00:00,{number},{number}" for number in (*again, *numbers)]
        file = self.tiny.root / "data" / f"{self.arrived:03}.csv"
        file.write_text("\n".join(["event_time,id,value", *lines, ""]))

    def apply(self, branch: str | None = None) -> None:
        self.check_out(branch)
        rebuild: tuple[str, ...] = ()
        if branch is not None and branch in self.rebuilt:
            names = sorted(name for name in self.changes[branch] if name in self.main)
            rebuild = tuple(part for name in names for part in ("--allow", f"rebuild:{name}+"))
        where = () if branch is None else ("-b", branch)
        said = self.program("apply", "-y", *where, *rebuild)
        if branch is not None and "error[E0306]" in said.err:
            # An input of what is new in the branch was rebuilt on the head.
            self.program.ok("branch", "delete", branch, "-y")
            said = self.program("apply", "-y", *where, *rebuild)
        assert said.code == 0, said.out + said.err

    def begin(self, branch: str) -> None:
        self.changes[branch] = self.change()
        if self.chance.random() < 0.2 and all(n in self.main for n in self.changes[branch]):
            self.rebuilt.add(branch)
        self.apply(branch)

    def promote(self, branch: str) -> None:
        """Merge the change, and promote; a branch that comes too late is built again first."""
        consents: list[str] = []
        for _ in range(4):
            if self.chance.random() < 0.3:
                self.check_out(branch)
            said = self.program("promote", branch, "-y", *consents)
            if said.code == 0:
                break
            codes = set(re.findall(r"E11\d\d", said.out + said.err))
            assert codes, said.out + said.err
            if codes & TOO_LATE:
                self.program.ok("branch", "delete", branch, "-y")
                consents = []
                self.apply(branch)
                if branch not in self.branches():
                    break  # the head has all of it
                continue
            assert codes == {"E1124"}, said.out + said.err
            names = sorted(set(re.findall(r"--allow (rebuild:\w+)", said.out + said.err)))
            consents = [part for name in names for part in ("--allow", name)]
        assert said.code == 0, said.out + said.err
        assert branch not in self.branches()
        self.main |= self.changes.pop(branch)

    def branches(self) -> set[str]:
        return self.tiny.workspace().branch_names()

    # --- What has to be ---

    def check(self) -> None:
        self.apply()
        rest = self.program("plan", "--detailed-exitcode")
        assert rest.code == 0, rest.out
        assert verify_integrity(self.tiny.workspace()) == ()
        for name in ("root", *self.main):
            assert sorted(self.tiny.ids(name)) == sorted(self.ids), name


@pytest.mark.parametrize(
    "seed", [1, *[pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12)]]
)
def test_ten_branches_lose_and_double_nothing_in_whatever_order_they_are_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    chance = random.Random(seed)
    share(CountingEngine(), monkeypatch)
    tiny = Tiny.fresh(tmp_path / "team")
    (tiny.root / "data" / "1.csv").unlink()
    team = Team(tiny, Program(tiny.root, monkeypatch, capsys), chance)
    team.arrive()
    team.apply()
    waiting = [f"pr-{n}" for n in range(10)]
    for branch in waiting:
        team.begin(branch)
    while waiting:
        match chance.choice(["arrive", "head", "branch", "promote", "promote"]):
            case "arrive":
                team.arrive()
            case "head":
                team.arrive()
                team.apply()
            case "branch":
                team.apply(chance.choice(waiting))
            case "promote":
                team.promote(waiting.pop(chance.randrange(len(waiting))))
    team.check()
    team.program.ok("verify")
