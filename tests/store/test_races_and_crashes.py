"""What holds between processes: compare-and-swap, claims, and being killed at any step."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from odfbuild.errors import StaleHeadError
from odfbuild.odf.model import DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.store import files
from odfbuild.store.claims import claim, holders
from odfbuild.store.dataset import MARKER, DatasetStore
from tests.store.chains import NOW, create, info, workspace

# Fresh interpreters, so that locks and threads of the test process are not inherited.
PROCESSES = multiprocessing.get_context("spawn")
SECONDS = 300
"""How long to wait for others; they need one, on a machine that has time."""


def _append_in_rounds(path: Path, number: int, rounds: int, barrier: Barrier, results: Any) -> None:
    store = DatasetStore(path)
    for _ in range(rounds):
        head = store.head()
        barrier.wait(SECONDS)
        try:
            results.put((number, store.append(head, (info(f"process {number}"),), NOW)))
        except StaleHeadError:
            results.put((number, None))
        barrier.wait(SECONDS)


def test_of_processes_that_race_for_the_head_exactly_one_wins_each_round(tmp_path: Path) -> None:
    store = create(workspace(tmp_path), "ds")
    start = store.head()
    racers, rounds = 4, 25
    barrier, results = PROCESSES.Barrier(racers), PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_append_in_rounds, args=(store.path, n, rounds, barrier, results))
        for n in range(racers)
    ]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=SECONDS) for _ in range(racers * rounds)]
    for process in processes:
        process.join(SECONDS)
        assert process.exitcode == 0
    won = [head for _, head in outcomes if head is not None]
    assert len(won) == rounds
    assert {hash for hash, _ in store.walk(store.head(), start)} == set(won)


def _append_until_done(path: Path, number: int, count: int) -> None:
    store = DatasetStore(path)
    for item in range(count):
        while True:
            try:
                store.append(store.head(), (info(f"{number}.{item}"),), NOW)
                break
            except StaleHeadError:
                continue


def test_writers_that_retry_lose_and_double_nothing(tmp_path: Path) -> None:
    store = create(workspace(tmp_path), "ds")
    start = store.head()
    processes = [
        PROCESSES.Process(target=_append_until_done, args=(store.path, n, 15)) for n in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(SECONDS)
        assert process.exitcode == 0
    texts = [block.event.description for _, block in store.walk(store.head(), start)]
    assert sorted(texts) == sorted(f"{n}.{i}" for n in range(4) for i in range(15))


def test_threads_that_race_for_the_head_lose_nothing(tmp_path: Path) -> None:
    store = create(workspace(tmp_path), "ds")
    start = store.head()
    threads = [
        threading.Thread(target=_append_until_done, args=(store.path, n, 10)) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sum(1 for _ in store.walk(store.head(), start)) == 40


def _create_once(root: Path, number: int, barrier: Barrier, results: Any) -> None:
    barrier.wait(SECONDS)
    try:
        create(workspace(root), "ds", info(f"process {number}"))
        results.put(number)
    except StaleHeadError:
        results.put(None)


def test_of_processes_that_create_the_same_dataset_one_wins(tmp_path: Path) -> None:
    barrier, results = PROCESSES.Barrier(4), PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_create_once, args=(tmp_path, n, barrier, results))
        for n in range(4)
    ]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=SECONDS) for _ in processes]
    for process in processes:
        process.join(SECONDS)
    winners = [n for n in outcomes if n is not None]
    assert len(winners) == 1
    projection = workspace(tmp_path).projections()["ds"]
    assert projection.info == info(f"process {winners[0]}")
    keys = [file.name for file in (tmp_path / ".odfbuild-keys").iterdir()]
    assert sorted(keys) == [".gitignore", projection.dataset_id.multibase]


# --- Killed ---


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _commit(path: Path, staged: Path, steps: int) -> None:
    store = DatasetStore(path)
    expected = store.head()
    blocks, _ = store.prepare(expected, (info("two"), info("three")), NOW)
    data, checkpoint = staged / "data", staged / "checkpoint"
    hashes: list[Multihash] = []
    plan: list[Callable[[], object]] = [
        lambda: store.put_object("data", data, Multihash.sha3_256(b"data")),
        lambda: store.put_object("checkpoints", checkpoint, Multihash.sha3_256(b"checkpoint")),
        *(lambda b=block: hashes.append(store.put_block(b)) for block in blocks),
        lambda: store.swap_head(expected, hashes[-1]),
    ]
    for step in plan[:steps]:
        step()
    _die()


@pytest.mark.parametrize("steps", range(6))
def test_killed_after_any_step_of_a_commit_a_rerun_gives_the_same_chain(
    tmp_path: Path, steps: int
) -> None:
    store = create(workspace(tmp_path), "ds", info("one"))
    before = store.head()
    staged = tmp_path / "staged"
    staged.mkdir()

    def prepare() -> None:
        (staged / "data").write_bytes(b"data")
        (staged / "checkpoint").write_bytes(b"checkpoint")

    prepare()
    process = PROCESSES.Process(target=_commit, args=(store.path, staged, steps))
    process.start()
    process.join(SECONDS)
    assert process.exitcode == -signal.SIGKILL
    again = DatasetStore(store.path)
    undisturbed, _ = again.prepare(before, (info("two"), info("three")), NOW)
    final = Multihash.sha3_256(undisturbed[-1])
    assert again.head() == (before if steps < 5 else final)
    if again.head() == before:
        prepare()
        again.put_object("data", staged / "data", Multihash.sha3_256(b"data"))
        again.put_object("checkpoints", staged / "checkpoint", Multihash.sha3_256(b"checkpoint"))
        again.append(before, (info("two"), info("three")), NOW)
    assert again.head() == final
    assert [b.sequence_number for _, b in again.walk(final)] == [3, 2, 1, 0]
    assert workspace(tmp_path).projections()["ds"].info == info("three")


def _create_and_die_at_write(root: Path, fatal: int) -> None:
    """Create a dataset, killed at the `fatal`-th durable change of the file system."""
    done = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done > fatal:
                _die()
            return original(*args, **options)

        return wrapper

    # Faults are put where every durable write passes; nothing else is replaced.
    files.stage = counted(files.stage)
    files.sync = counted(files.sync)
    data = root / "staged"
    data.write_bytes(b"data")
    space = workspace(root)
    objects = [(data, Multihash.sha3_256(b"data"))]
    space.create("acme/ds", DatasetKind.Root, (info("x"), info("y")), NOW, objects=objects)
    os._exit(0)


def test_a_creation_that_is_killed_anywhere_is_cleared_by_the_next_one(tmp_path: Path) -> None:
    fatal = 0
    while True:
        root = tmp_path / str(fatal)
        root.mkdir()
        # Forked: a hundred interpreters would take too long to start.
        process = multiprocessing.get_context("fork").Process(
            target=_create_and_die_at_write, args=(root, fatal)
        )
        process.start()
        process.join(SECONDS)
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        space = workspace(root)
        visible = space.aliases()
        assert list(space.projections()) == visible
        if visible:
            assert space.projections()["acme/ds"].info == info("y")
        else:
            create(space, "acme/ds", info("x"), info("y"))
        identity = space.projections()["acme/ds"].dataset_id
        keys = sorted(file.name for file in space.keys.iterdir() if file.name != ".gitignore")
        assert [name for name in keys if not name.startswith(files.PENDING)] == [identity.multibase]
        assert not [name for name in keys if "ed01" in name and identity.multibase not in name]
        fatal += 1
    assert fatal > 15
    assert not (root / "chains" / "acme" / "ds" / MARKER).exists()


# --- Claims ---


def _hold(root: Path, aliases: list[str], ready: Any, done: Any) -> None:
    with workspace(root).claim(aliases) as claim:
        ready.put((os.getpid(), sorted(claim.won), dict(claim.held)))
        done.wait(SECONDS)


def test_a_dataset_claimed_by_one_process_is_held_for_another_and_the_holder_is_named(
    tmp_path: Path,
) -> None:
    ready, done = PROCESSES.Queue(), PROCESSES.Event()
    process = PROCESSES.Process(target=_hold, args=(tmp_path, ["a", "acme/B"], ready, done))
    process.start()
    pid, won, held = ready.get(timeout=SECONDS)
    assert (won, held) == (["a", "acme/B"], {})
    space = workspace(tmp_path)
    with space.claim(["a", "Acme/b", "c"]) as claim:
        assert claim.won == {"c"}
        assert set(claim.held) == {"a", "Acme/b"}
        assert all(f"process {pid}, since 20" in who for who in claim.held.values())
    done.set()
    process.join(SECONDS)
    with space.claim(["a", "acme/b", "c"]) as claim:
        assert claim.won == {"a", "acme/b", "c"}


def test_claims_of_a_killed_process_are_free_at_once(tmp_path: Path) -> None:
    ready, done = PROCESSES.Queue(), PROCESSES.Event()
    process = PROCESSES.Process(target=_hold, args=(tmp_path, ["a"], ready, done))
    process.start()
    pid, _, _ = ready.get(timeout=SECONDS)
    space = workspace(tmp_path)
    with space.claim(["a"]) as claim:
        assert not claim.won
    os.kill(pid, signal.SIGKILL)
    process.join(SECONDS)
    with space.claim(["a"]) as claim:
        assert claim.won == {"a"}
        assert not list((space.cache / "locks").glob(f"{pid}@*"))


def test_claims_exclude_workspaces_and_threads_of_one_process(tmp_path: Path) -> None:
    first, second = workspace(tmp_path), workspace(tmp_path)
    with first.claim(["a"]) as mine:
        with second.claim(["a", "b"]) as other:
            assert other.won == {"b"}
            assert f"process {os.getpid()}" in other.held["a"]
        # Leaving the second claim must not have freed the first one for other processes.
        ready, done = PROCESSES.Queue(), PROCESSES.Event()
        process = PROCESSES.Process(target=_hold, args=(tmp_path, ["a", "b"], ready, done))
        process.start()
        _, won, held = ready.get(timeout=SECONDS)
        assert (won, list(held)) == (["b"], ["a"])
        done.set()
        process.join(SECONDS)
    mine.release()
    with second.claim(["a"]) as again:
        assert again.won == {"a"}


def _claim_in_rounds(
    root: Path, aliases: list[str], rounds: int, barrier: Barrier, results: Any
) -> None:
    space = workspace(root)
    for number in range(rounds):
        barrier.wait(SECONDS)
        with space.claim(aliases) as claim:
            results.put((number, sorted(claim.won)))
            barrier.wait(SECONDS)


def test_two_processes_never_both_own_a_dataset(tmp_path: Path) -> None:
    aliases, rounds = [f"d{n}" for n in range(200)], 20
    barrier, results = PROCESSES.Barrier(2), PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_claim_in_rounds, args=(tmp_path, order, rounds, barrier, results))
        for order in (aliases, aliases[::-1])
    ]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=SECONDS) for _ in range(2 * rounds)]
    for process in processes:
        process.join(SECONDS)
        assert process.exitcode == 0
    for number in range(rounds):
        won = [alias for n, names in outcomes if n == number for alias in names]
        assert sorted(won) == sorted(aliases)


def test_ten_thousand_claims_need_few_descriptors_and_little_time(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    aliases = [f"d{n}" for n in range(10_000)]
    with space.claim(["warm-up"]):
        pass
    started = time.process_time()
    with space.claim(aliases) as claim:
        assert len(claim.won) == 10_000
        assert len(_opened_below(tmp_path)) <= 16
    assert time.process_time() - started < 20


def test_a_deleted_cache_does_not_free_what_is_claimed_here(tmp_path: Path) -> None:
    import shutil

    space = workspace(tmp_path)
    with space.claim(["a"]) as first:
        shutil.rmtree(space.cache)
        with space.claim(["b"]) as second:
            assert first.won | second.won == {"a", "b"}
    with space.claim(["a", "b"]) as both:
        assert both.won == {"a", "b"}


def _opened_below(folder: Path) -> list[Path]:
    """Files of a folder that this process holds open; others may come and go in other threads."""
    found = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # the listing itself is closed by now
            found.append(descriptor.readlink())
    return [each for each in found if each.is_relative_to(folder)]


def test_claims_that_ended_leave_no_file_open(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / str(number)
        with claim(folder, ["a", "b"]) as first, claim(folder, ["b", "c"]) as second:
            assert (set(first.won), set(second.held)) == ({"a", "b"}, {"b"})
            # What the outer claim holds outlives the inner one.
            second.release()
            assert claim(folder, ["a"]).held
        assert not holders(folder, ["a", "b", "c"])
    assert _opened_below(tmp_path) == []
