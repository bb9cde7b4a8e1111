"""The context of a fetch step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import MergeStrategy
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.remote_object import RemoteObject
from odfbuild.values import Value


def _none_stays(source: RemoteObject) -> bool:
    return False


class FetchContext(Value, kw_only=True):
    """Where and when a source is fetched; `project` and `dataset` are names.

    `root` is the project's folder, to which relative paths refer. `scratch` goes when the run ends;
    `cache` stays, but may be deleted at any time; `inbox` holds what its source does not hold any
    more, until a chain does. `now` is the system time. `moved` says that the definition of the
    source changed since its state was recorded, so the state may be that of another place.
    `content` is a hash of the bytes for which that state stands, if the chain tells. `late` are
    paths of files that were passed over and are to be read. `columns` are those that the definition
    declares, with the one of operations; `None`: it declares none, so all are read. `merge` is how
    what is fetched joins the history, `vocab` how system columns are called. An object of a store
    that `stays` there is not fetched.
    """

    project: str
    dataset: str
    root: Path
    scratch: Path
    cache: Path
    inbox: Path
    now: Timestamp
    settings: IngestSettings = field(default_factory=IngestSettings)
    moved: bool = False
    content: str | None = None
    late: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    merge: MergeStrategy | None = None
    vocab: Vocabulary = field(default_factory=Vocabulary)
    stays: Callable[[RemoteObject], bool] = _none_stays
