"""A new root that reads a topic: its first messages say columns, key and merge strategy."""

from __future__ import annotations

from odfbuild.api.authoring.new_request import NewDatasetRequest, check_column, missing
from odfbuild.ingest.fetch.kafka.address import is_kafka, named, wanted
from odfbuild.ingest.fetch.kafka.look import LookedAt, look_at_topic
from odfbuild.odf.schema.ddl import quoted_name
from odfbuild.project.model import Config
from odfbuild.values import Value
from odfbuild.wording import count

_EXAMPLE = "'kafka://reader:${{ env.KAFKA_PASSWORD }}@broker.example.org:9092/orders?tls=on'"
_EVENT_TIME = "event_time"


class TopicRoot(Value, kw_only=True):
    """A root to be begun; `kind` is that of its merge strategy, `columns` are DDL.

    `looked_at` says how many messages the proposal follows from.
    """

    name: str
    url: str
    called: str
    kind: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    event_time: str
    looked_at: str
    description: str | None = None


def topic_wanted(request: NewDatasetRequest, config: Config) -> TopicRoot:
    """The root that is wanted, with what its topic looks like. Raises `OdfbuildError`."""
    if request.read or request.sample:
        raise missing("a topic is looked at itself", "leave out --read and --sample")
    if len(request.sources) != 1 or not is_kafka(request.sources[0]):
        what = f"'{' '.join(request.sources)}' is not one address of a topic"
        raise missing(
            what if request.sources else "a root of kind 'kafka' needs to know the address",
            f"odfbuild new kafka {request.name} {_EXAMPLE}",
        )
    url = request.sources[0]
    found = look_at_topic(url, config.ingest, config.root)
    if not found.guess.records:
        raise missing(f"{named(url)} has no messages to look at", "send some, then run this again")
    if request.merge == "snapshot":
        raise missing("a topic is no snapshot of all rows", "use another --merge")
    url, columns, own_key = _with_key(url, found)
    names = list(columns)
    for name in request.key:
        check_column(name, names, "--key")
    key = request.key or own_key
    merge = request.merge or ("upsert" if key else "append")
    if merge != "append" and not key:
        raise missing(
            f"the messages of {named(url)} have no key", "name the columns of one with --key"
        )
    event_time = found.guess.event_time
    if event_time is None:
        event_time = _EVENT_TIME
        url = _with(url, f"timestamp={event_time}")
        columns = {event_time: "TIMESTAMP", **columns}
    retracts = merge == "upsert" and own_key
    declared = [f"{quoted_name(name)} {ddl}" for name, ddl in columns.items()]
    return TopicRoot(
        name=request.name,
        url=url,
        called=named(url),
        kind={"upsert": "UpsertStream"}.get(merge, merge.capitalize()),
        columns=(*(["op INT"] if retracts else []), *declared),
        key=() if merge == "append" else key,
        event_time=event_time,
        looked_at=f"the first {count(found.guess.records, 'message')}",
        description=request.description,
    )


def _with_key(url: str, found: LookedAt) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The address that takes the keys of messages, the columns, and those of the key."""
    columns = {each.name: each.type for each in found.guess.columns}
    asked = wanted(url, url)
    given = asked.columns.get("key")
    if given is not None or asked.key_is_json:
        return url, columns, (given,) if given in columns else ()
    if found.key is None:
        return url, columns, ()
    column = found.key.member or _free("key", columns)
    if found.key.member is None:
        columns = {column: found.key.ddl, **columns}
    return (
        _with(url, f"key={column}{'&keyFormat=json' if found.key.is_json else ''}"),
        columns,
        (column,),
    )


def _free(name: str, columns: dict[str, str]) -> str:
    return name if name not in columns else _free(f"message_{name}", columns)


def _with(url: str, parameter: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parameter}"
