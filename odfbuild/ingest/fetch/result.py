"""The result of a fetch step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from odfbuild.odf.model import SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.remote_object import RemoteObject
from odfbuild.values import Value

ETAG = "odf/etag"
LAST_MODIFIED = "odf/last-modified"
SOURCE_NAME = "default"


class Fetched(Value):
    """A local file with new data (`None`: no data, only a new state).

    `state` is what the next poll resumes from (`None`: the source offers nothing to compare with),
    `event_time` the time of records that carry none (`None`: the time of ingestion), `display_name`
    what messages call the file; it never holds a secret. `content` is a hash of the bytes for
    which `state` stands, where that does not follow from it; `note` says why there is no data. A
    `late` file leaves the state as it was. A file of `changes` has the
    column of operations, declared or not; a `whole` one is the state of a source whose other files
    are changes, so it is merged by what is different.
    `own_rows`: odfbuild wrote the file itself, as Parquet, of values that it checked.
    Data that may stay `elsewhere` has no file, until somebody needs it: `here`.
    """

    file: Path | None
    state: SourceState | None
    event_time: Timestamp | None
    display_name: str
    content: str | None = None
    note: str = ""
    late: bool = False
    whole: bool = False
    changes: bool = False
    own_rows: bool = False
    elsewhere: Elsewhere | None = None

    def here(self) -> Fetched:
        """The same with its file, which is fetched now if need be."""
        return self if self.elsewhere is None else self.elsewhere.bring()


class Elsewhere(Value):
    """An object that stays in its store, and what fetches it all the same."""

    source: RemoteObject
    bring: Callable[[], Fetched]


def etag(value: str) -> SourceState:
    """State that is a name given by the source."""
    return SourceState(source_name=SOURCE_NAME, kind=ETAG, value=value)


def last_modified(moment: Timestamp) -> SourceState:
    """State that is a time of modification."""
    return SourceState(source_name=SOURCE_NAME, kind=LAST_MODIFIED, value=str(moment))
