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
from typing import Any

import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from tests.apply.branching import CountingEngine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.long

TOO_LATE = {"E1122", "E1123", "E1125", "E1126", "E1128"}
"""Why a branch is built again: another one was promoted first."""
QUERY = "SELECT event_time, id, value * {} AS value FROM source"


Definitions = dict[str, dict[str, Any]]
"""What is defined, or changed, of each dataset: its source, the factor of its query, its text."""


class Team:
    """A project, its definitions on the head, and the changes of branches."""

    def __init__(self, tiny: Tiny, program: Program, chance: random.Random) -> None:
        self.tiny, self.program, self.chance = tiny, program, chance
        (tiny.root / "datasets" / "derived.yaml").unlink()
        self.main: Definitions = {
            "a": {"source": "root", "factor": 2},
            "b": {"source": "a", "factor": 3},
            "c": {"source": "b", "factor": 5},
            "d": {"source": "root", "factor": 7},
        }
        self.changes: dict[str, Definitions] = {}
        self.rebuilt: set[str] = set()
        self.arrived = 0
        self.ids: list[int] = []

    # --- Definitions ---

    def check_out(self, branch: str | None = None) -> None:
        """Write the definitions of the head, or those of a branch."""
        wanted = merged(self.main, self.changes.get(branch or "", {}))
        for file in (self.tiny.root / "datasets").glob("[a-z].yaml"):
            file.unlink()
        for file in (self.tiny.root / "datasets").glob("new*.yaml"):
            file.unlink()
        for name, each in wanted.items():
            self.tiny.derive(name, QUERY.format(each["factor"]), each["source"])
            if "text" in each:
                self.tiny.describe(name, each["text"])

    def change(self) -> Definitions:
        """A change that somebody asks for."""
        chance = self.chance
        found: Definitions = {}
        for _ in range(chance.choice([1, 1, 2])):
            name = chance.choice("abcd")
            match chance.choice(["query", "query", "describe", "new"]):
                case "query":
                    found.setdefault(name, {})["factor"] = chance.randint(10, 99)
                case "describe":
                    found.setdefault(name, {})["text"] = f"v{chance.randint(1, 99)}"
                case "new":
                    new = f"new{chance.randint(1, 6)}"
                    found[new] = {"source": name, "factor": chance.randint(10, 99)}
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
            self.give_up(branch)
            said = self.program("apply", "-y", *where, *rebuild)
        assert said.code == 0, said.out + said.err

    def give_up(self, branch: str) -> None:
        """Delete a branch, to build it again; a name that somebody else took is left to them."""
        self.program.ok("branch", "delete", branch, "-y")
        taken = {name for name in self.main if name.startswith("new")}
        change = self.changes[branch]
        self.changes[branch] = {name: each for name, each in change.items() if name not in taken}
        self.check_out(branch)

    def begin(self, branch: str) -> None:
        self.changes[branch] = self.change()
        if self.chance.random() < 0.2 and all(n in self.main for n in self.changes[branch]):
            self.rebuilt.add(branch)
        self.apply(branch)

    def promote(self, branch: str) -> None:
        """Merge the change, and promote; a branch that comes too late is built again first."""
        consents: list[str] = []
        for _ in range(4):
            if branch not in self.branches():
                break  # the head has all of it
            if self.chance.random() < 0.3:
                self.check_out(branch)
            said = self.program("promote", branch, "-y", *consents)
            if said.code == 0:
                break
            codes = set(re.findall(r"E11\d\d", said.out + said.err))
            assert codes, said.out + said.err
            if codes & TOO_LATE:
                self.give_up(branch)
                consents = []
                self.apply(branch)
                continue
            assert codes == {"E1124"}, said.out + said.err
            names = sorted(set(re.findall(r"--allow (rebuild:\w+)", said.out + said.err)))
            consents = [part for name in names for part in ("--allow", name)]
        assert branch not in self.branches()
        self.main = merged(self.main, self.changes.pop(branch))
        self.check_out()
        summary = self.program("plan", "--json").data["summary"]
        # What is promoted is what is merged in Git; records may wait, definitions do not.
        said = self.program("plan")
        assert (summary["create"], summary["change"], summary["refuse"]) == (0, 0, 0), said.out

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


def merged(main: Definitions, change: Definitions) -> Definitions:
    """As Git merges what was changed in different places."""
    return {name: main.get(name, {}) | change.get(name, {}) for name in (main | change)}


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
