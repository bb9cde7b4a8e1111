"""Recorded heads of datasets, and whether their chains still descend from them.

Who knows, the best first: notes that runs left on commits of Git, the chains that lie in Git, the
log of runs on this machine.
"""

from __future__ import annotations

from odfbuild.errors import IntegrityError, PlanError
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.project.git.notes import anchors
from odfbuild.project.git.references import references_of
from odfbuild.project.git.repository import has_notes, inside, repository
from odfbuild.project.model import Config
from odfbuild.store.branches import HEAD
from odfbuild.store.dataset import DatasetStore
from odfbuild.survey.runs import runs_in
from odfbuild.values import Value


class KnownHead(Value, kw_only=True):
    """A head of a dataset; `by` says in words who knows it, `commit` is the full hash if Git."""

    head: Multihash
    by: str
    commit: str | None = None


def noted_heads(config: Config) -> dict[str, KnownHead]:
    """The newest noted head of each dataset; starts no program where nobody ever left a note.

    None in a branch: its datasets go their own way on purpose.
    """
    if config.branch is not None or not has_notes(config.root):
        return {}
    found: dict[str, KnownHead] = {}
    try:
        with repository(config.root, "no heads are noted") as repo:
            for each in anchors(repo, config.qualified_name):
                by = f"the run at {each.commit}"
                for name, head in each.heads.items():
                    found[name] = KnownHead(
                        head=Multihash.parse(head), by=by, commit=each.commit.hash
                    )
    except (PlanError, ValueError):
        return {}  # no Git, or notes that are not ours
    return found


def known_heads(config: Config) -> dict[str, KnownHead]:
    """The last known head of each dataset, by whoever knows it best; nobody does of a branch."""
    if config.branch is not None:
        return {}
    return {**_heads_of_runs(config), **_heads_in_git(config), **noted_heads(config)}


def _heads_in_git(config: Config) -> dict[str, KnownHead]:
    """Heads of the chains as they are committed in Git, where they lie there."""
    try:
        with repository(config.root, "no heads are there") as repo:
            folder = inside(repo, config.state)
            if folder is None or not repo.head.is_valid():
                return {}
            commit = repo.head.commit
            by = f"commit {commit.hexsha[:10]}, where it lies in Git,"
            return {
                name: KnownHead(head=Multihash.parse(text), by=by, commit=commit.hexsha)
                for (name, reference), text in references_of(commit, folder).items()
                if reference == HEAD
            }
    except (PlanError, ValueError):
        return {}


def _heads_of_runs(config: Config) -> dict[str, KnownHead]:
    found = {}
    for run in runs_in(config.cache, None):
        for name, result in run.datasets.items():
            after = result.get("head_after")
            if after and after != result.get("head_before"):
                head = Multihash.parse(after)
                found[name] = KnownHead(head=head, by=f"run {run.id}")
    return found


def departure(store: DatasetStore, head: Multihash, known: KnownHead) -> ChainDrift | None:
    """How the chain that ends with `head` left the history that is known; `None`: it did not.

    Reads the blocks after the known head, and more only where it is not part of the chain.
    """
    if head == known.head or _descends(store, head, known.head):
        return None
    back = _descends(store, known.head, head)
    cause, how = (
        (DriftCause.MOVED_BACK, "moved back") if back else (DriftCause.MOVED_ASIDE, "went aside")
    )
    number = store.read_block(head).sequence_number
    return ChainDrift(
        dataset=store.name,
        cause=cause,
        message=f"its head {how} to block #{number} {head.short}; "
        f"{known.by} left it at {known.head.short}",
        help=_way_back(store, known.head),
        block=head,
        sequence_number=number,
        commit=known.commit,
    )


def gone(name: str, known: KnownHead) -> ChainDrift:
    """The drift of a dataset that is defined and had a head, and has no chain any more."""
    return ChainDrift(
        dataset=name,
        cause=DriftCause.GONE,
        message=f"it has no chain; {known.by} left its head at {known.head.short}",
        help="restore the chain (git checkout, a backup), or let apply create a new one",
        block=known.head,
        commit=known.commit,
    )


def _descends(store: DatasetStore, head: Multihash, ancestor: Multihash) -> bool:
    """Whether `ancestor` lies in the history that ends with `head`."""
    try:
        number = store.read_block(ancestor).sequence_number
        for hash, block in store.walk(head):
            if hash == ancestor:
                return True
            if block.sequence_number <= number:
                return False
    except IntegrityError:
        # What is not on disk is part of no chain that can be read.
        return False
    return False


def _way_back(store: DatasetStore, known: Multihash) -> str:
    accept = "`odfbuild git anchor` records the current heads if they are correct"
    if not store.has_block(known):
        pull = f"`odfbuild pull {store.name} --from REPOSITORY`"
        return f"restore the chain (git checkout, a backup, or {pull}); {accept}"
    return f"`odfbuild reset {store.name} --to {known}` restores it; {accept}"
