"""Growth of a repository with its chains in Git and in the storage, and reading of one long chain.

    python benchmarks/git.py

simulates runs that each append a block to some datasets, and prints for both forms the size of
`.git` after `git repack -adf`, the time of `git status`, the time of the commit of one more run and
what it adds, and the time of a clone and of a cold plan in it. Then it prints how long commands
take with one long chain in the storage. README.md in this folder says how to read it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from odfbuild.odf.chain.summary import ChainSummary, SignedSummary
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import AddData, DatasetKind, Seed, SetInfo
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.keys import PrivateKeys, new_pair
from odfbuild.store.storage import Storage
from odfbuild.store.stored_blocks import StoredBlocks

PROGRAM = (sys.executable, "-m", "odfbuild")
FORMS = ("git", "storage")
ABOUT = "A dataset of the benchmark"
NOW = Timestamp.parse("2026-01-01T00:00:00Z")
_PORTION = 10_000


def main() -> int:
    """Measure both forms, then the long chain; print tables."""
    options = parse()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        print(f"{options.datasets} datasets, {options.each} of them in each run\n")
        print(f"{'chains in':<10}{'runs':>8}{'.git':>12}{'status':>9}{'commit':>9}", end="")
        print(f"{'adds':>11}{'clone':>9}{'cold plan':>11}")
        for form in FORMS:
            for runs in (options.runs // 10, options.runs):
                print(growth(work / f"{form}-{runs}", form, options, runs), flush=True)
        long_chain(work / "long", options.blocks)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--each", type=int, default=10, help="datasets that a run appends to")
    parser.add_argument("--blocks", type=int, default=100_000, help="blocks of the long chain")
    parser.add_argument("--large", action="store_true", help="1,000 datasets, 10,000 runs, 10^6")
    options = parser.parse_args()
    if options.large:
        options.datasets, options.runs, options.blocks = 1_000, 10_000, 1_000_000
    return options


# --- Growth ---


@dataclass
class Chain:
    """A simulated dataset: the state that the next block continues."""

    name: str
    keys: PrivateKeys
    store: DatasetStore
    id: DatasetId
    head: Multihash | None = None
    summary: ChainSummary | None = None
    number: int = 0
    newest: tuple[bytes, ...] = ()

    @classmethod
    def new(cls, name: str, keys: Path) -> Chain:
        """A dataset that has no block yet, with a key of its own."""
        identity, pem = new_pair()
        private = PrivateKeys(keys)
        private.add({identity: pem})
        return cls(name, private, DatasetStore(keys / "none" / name, name), identity)

    def append(self, count: int = 1) -> list[bytes]:
        """The bytes of the next blocks."""
        events = [
            AddData(prev_offset=None, new_watermark=Timestamp(NOW.ns + (self.number + i) * 10**9))
            for i in range(count)
        ]
        if self.head is None:
            seed = Seed(dataset_id=self.id, dataset_kind=DatasetKind.Root)
            events = [seed, SetInfo(description=ABOUT), *events]
        blocks, state = self.store.prepare(self.head, events, NOW)
        hashes = [Multihash.sha3_256(each) for each in blocks]
        links = [(h, self.store.decode(h, b)) for h, b in zip(hashes, blocks, strict=True)]
        self.summary = ChainSummary.of(self.summary, links)
        self.head, self.number = hashes[-1], self.number + count
        self.newest = (*self.newest, *blocks)[-3:]
        self.store._rules = (self.head, state)  # as after an append
        return blocks

    def signed(self) -> bytes:
        """The file of its summary."""
        return SignedSummary.sign(self.summary, self.keys.key(self.id), self.newest).encode()


def growth(folder: Path, form: str, options: argparse.Namespace, runs: int) -> str:
    """Simulate `runs` and measure; a line of the table."""
    root = folder / "project"
    chains = [Chain.new(f"d{n:04}", folder / "keys") for n in range(options.datasets)]
    lake = {
        each.name: StoredBlocks(Storage(str(folder / "lake"), folder), folder / "cache")
        for each in chains
    }
    begin_project(root, [each.name for each in chains], form)
    git(root, "init", "-q", "-b", "main")
    importer = subprocess.Popen(
        ["git", "fast-import", "--quiet", "--date-format=now"], cwd=root, stdin=subprocess.PIPE
    )
    stream = importer.stdin
    for run in range(runs + 1):
        # The first one creates all, the others append to some in turn.
        some = chains if run == 0 else turn(chains, run, options.each)
        files = {}
        for each in some:
            files |= written(each, each.append(), form, lake[each.name])
        if run == 0:
            files |= {f.relative_to(root).as_posix(): f.read_bytes() for f in definitions(root)}
        stream.write(commit_of(run, files))
    stream.close()
    assert importer.wait() == 0
    git(root, "reset", "-q", "--hard", "main")
    git(root, "repack", "-adfq")
    size = bytes_in(root / ".git")
    status = timed(lambda: git(root, "status", "--short"))
    for each in turn(chains, runs + 1, options.each):
        for name, data in written(each, each.append(), form, lake[each.name]).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    before = bytes_in(root / ".git")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0")
    commit = timed(lambda: (git(root, "add", "-A"), git(root, *who, "commit", "-qm", "run")))
    adds = bytes_in(root / ".git") - before
    clone = timed(lambda: git(folder, "clone", "-q", f"file://{root}", "clone"))
    plan = timed(lambda: odfbuild(folder / "clone", "plan"))
    shutil.rmtree(folder)
    return (
        f"{form:<10}{runs:>8}{size / 1e6:>9.1f} MB{status:>7.2f} s{commit:>7.2f} s"
        f"{adds / 1e3:>8.0f} KB{clone:>7.2f} s{plan:>9.2f} s"
    )


def turn(chains: Sequence[Chain], run: int, each: int) -> list[Chain]:
    """The datasets that a run appends to."""
    return [chains[(run * each + n) % len(chains)] for n in range(min(each, len(chains)))]


def written(
    chain: Chain, blocks: Sequence[bytes], form: str, lake: StoredBlocks
) -> dict[str, bytes]:
    """Files that Git gets of an append, by path."""
    folder = f"chains/{chain.name}"
    files = {f"{folder}/refs/head": str(chain.head).encode()}
    if form == "git":
        return files | {f"{folder}/blocks/{Multihash.sha3_256(b)}": b for b in blocks}
    lake.put(blocks)
    return files | {f"{folder}/info/summaries/head": chain.signed()}


def begin_project(root: Path, names: Sequence[str], form: str) -> None:
    """A project with a definition for each name."""
    (root / "datasets").mkdir(parents=True)
    (root / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent:\n  name: bench\n  storage: ../lake\n"
        f"  chains: {form}\n"
    )
    for name in names:
        (root / "datasets" / f"{name}.yaml").write_text(
            f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: Root\n"
            f"  metadata:\n    - kind: SetInfo\n      description: {ABOUT}\n"
        )


def definitions(root: Path) -> Iterator[Path]:
    """All files of the project but chains."""
    yield root / "odfbuild.yaml"
    yield from sorted((root / "datasets").iterdir())


def commit_of(run: int, files: dict[str, bytes]) -> bytes:
    """A commit as `git fast-import` reads it."""
    message = f"run {run}".encode()
    parts = [b"commit refs/heads/main\ncommitter a <a@example.org> now\n"]
    parts.append(b"data %d\n%s\n" % (len(message), message))
    for name, data in files.items():
        parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
    return b"".join(parts)


# --- A long chain ---


def long_chain(work: Path, blocks: int) -> None:
    """Print what commands take with a chain of so many blocks in the storage."""
    project = work / "project"
    begin_project(project, ["long"], "storage")
    chain = Chain.new("long", work / "keys")
    lake = StoredBlocks(Storage(str(work / "lake"), work), work / "cache")
    while chain.number < blocks:
        files = written(chain, chain.append(min(_PORTION, blocks - chain.number)), "storage", lake)
    for name, data in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(data)
    print(
        f"\na chain of {blocks:,} blocks in the storage: {bytes_in(work / 'lake') / 1e6:.0f} MB",
        end="",
    )
    print(f" in {sum(1 for _ in (work / 'lake').rglob('f1620*')):,} files")
    print(f"cold plan         {timed(lambda: odfbuild(project, 'plan')):7.2f} s")
    print(f"log -n 10         {timed(lambda: odfbuild(project, 'log', 'long', '-n', '10')):7.2f} s")
    print(f"pull by serve     {timed_pull(work, project):7.2f} s", flush=True)
    print(f"verify            {timed(lambda: odfbuild(project, 'verify', '--integrity')):7.2f} s")


def timed_pull(work: Path, project: Path) -> float:
    """Seconds of a pull over loopback, by a project with its chains in a storage of its own."""
    server = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"], cwd=project, stdout=subprocess.PIPE, text=True
    )
    try:
        address = server.stdout.readline().split()[1]
        other = work / "other" / "project"
        begin_project(other, [], "storage")
        with (other / "odfbuild.yaml").open("a") as config:
            config.write(f"  repositories: {{hub: {{url: 'odf+{address}'}}}}\n")
            config.write("  external: {theirs: hub/long}\n")
        return timed(lambda: odfbuild(other, "pull"))
    finally:
        server.kill()
        server.wait()


# --- Helpers ---


def timed(work: object) -> float:
    """Wall seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def git(folder: Path, *arguments: str) -> None:
    """Run Git, which must succeed."""
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def odfbuild(root: Path, *arguments: str) -> None:
    """Run the program, which must succeed."""
    path = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def bytes_in(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


if __name__ == "__main__":
    sys.exit(main())
