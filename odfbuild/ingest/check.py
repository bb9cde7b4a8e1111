"""Errors in the definition of a source, found before anything is fetched.

The same checks as at run time, by the same functions. Reads nothing and uses no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.fetch.api_address import api_wanted, check_api_merge, is_api
from odfbuild.ingest.fetch.database.address import check_merge, is_database, named, wanted
from odfbuild.ingest.fetch.kafka import address as kafka
from odfbuild.ingest.fetch.sftp_address import is_sftp, sftp_place
from odfbuild.odf.model import (
    AddPushSource,
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    PrepStepPipe,
    ReadStep,
    ReadStepCsv,
    ReadStepNdJson,
    ReadStepParquet,
    SetPollingSource,
)

Path = tuple[str | int, ...]
Check = tuple[Path, Callable[[], object]]


def problems_of(source: SetPollingSource | AddPushSource) -> Iterator[tuple[Path, IngestError]]:
    """All problems, each with its place inside the event, such as `("fetch", "url")`."""
    for path, check in _checks(source):
        try:
            check()
        except IngestError as error:
            yield path, error
        except EnvironmentProblem:
            pass  # what is not installed here may be where it is applied


def _checks(source: SetPollingSource | AddPushSource) -> Iterator[Check]:
    yield from _checks_of_reading(source.read)
    if not isinstance(source, SetPollingSource):
        return
    from odfbuild.ingest.prepare import check_pipe
    from odfbuild.ingest.secrets import check_template

    for path, text in templates_of(source.fetch):
        if "${{" in text:
            yield ("fetch", *path), partial(check_template, text)
    yield from _checks_of(source.fetch)
    yield ("read", "kind"), partial(_check_format, source)
    yield ("merge", "kind"), partial(_check_cursor, source)
    yield ("fetch", "url"), partial(_check_topic, source)
    for number, step in enumerate(source.prepare or ()):
        if isinstance(step, PrepStepPipe):
            yield ("prepare", number, "command"), partial(check_pipe, step)


def _checks_of_reading(read: ReadStep) -> Iterator[Check]:
    """Checks of options that most sources leave as they are."""
    for option, name in (("dateFormat", "date_format"), ("timestampFormat", "timestamp_format")):
        value = getattr(read, name, None)
        if value not in (None, "rfc3339"):
            from odfbuild.engine.read_options import check_format

            yield ("read", option), partial(check_format, option, value)
    encoding = getattr(read, "encoding", None)
    if encoding not in (None, "utf8"):
        from odfbuild.engine.read_options import codec_of

        yield ("read", "encoding"), partial(codec_of, encoding, "")
    if isinstance(read, ReadStepCsv):
        signs = (("separator", read.separator), ("quote", read.quote), ("escape", read.escape))
        for option, value in signs:
            if value is not None and len(value) > 1:
                from odfbuild.engine.read_options import one_character

                yield ("read", option), partial(one_character, option, value)


def _checks_of(step: FetchStep) -> Iterator[Check]:
    match step:
        case FetchStepUrl():
            from odfbuild.ingest.fetch.url import check_url, refuse_path_time

            yield ("fetch", "url"), partial(check_url, step.url)
            yield ("fetch", "eventTime"), partial(refuse_path_time, step.event_time)
            yield ("fetch", "headers"), partial(_check_headers, step)
            for number, header in enumerate(step.headers or ()):
                from odfbuild.ingest.fetch.headers import check_header_name

                path = ("fetch", "headers", number, "name")
                yield path, partial(check_header_name, header.name)
        case FetchStepFilesGlob():
            from odfbuild.ingest.fetch.event_time import check_event_time
            from odfbuild.ingest.fetch.files_glob import check_order

            yield ("fetch", "order"), partial(check_order, step)
            if is_sftp(step.path) and "${{" not in step.path:
                yield ("fetch", "path"), partial(sftp_place, step.path, step.path, is_pattern=True)
            yield ("fetch", "eventTime"), partial(check_event_time, step.event_time)
        case FetchStepMqtt():
            from odfbuild.ingest.fetch.mqtt import check_topics

            yield ("fetch", "topics"), partial(check_topics, step)
        case FetchStepEthereumLogs():
            from odfbuild.ingest.fetch.ethereum.event import parse_event
            from odfbuild.ingest.fetch.ethereum.filter import parse_filter

            if step.signature:
                yield ("fetch", "signature"), partial(parse_event, step.signature)
            if step.filter:
                yield ("fetch", "filter"), partial(parse_filter, step.filter)


def _check_format(source: SetPollingSource) -> None:
    step = source.fetch
    if isinstance(step, FetchStepEthereumLogs):
        what, code = "log entries come", "E0417"
    elif isinstance(step, FetchStepUrl) and step.url.startswith("kartothek+"):
        what, code = "a table of kartothek comes", "E1367"
    elif isinstance(step, FetchStepUrl) and is_database(step.url):
        what, code = "a table or query of a database comes", "E0471"
    elif isinstance(step, FetchStepUrl) and is_api(step.url):
        if not source.prepare and not isinstance(source.read, ReadStepNdJson):
            raise IngestError(
                "records of an API come as NDJSON, which "
                f"`read: {{kind: {source.read.KIND}}}` cannot read",
                code="E0486",
                help="use `read: {kind: NdJson}`",
            )
        return
    else:
        return
    if not isinstance(source.read, ReadStepParquet):
        raise IngestError(
            f"{what} as Parquet, which `read: {{kind: {source.read.KIND}}}` cannot read",
            code=code,
            help="use `read: {kind: Parquet}`",
        )


def _check_cursor(source: SetPollingSource) -> None:
    step = source.fetch
    if isinstance(step, FetchStepUrl) and is_database(step.url):
        try:
            asked = wanted(step.url, step.url)
        except IngestError:
            return  # told of the address itself
        check_merge(asked, source.merge, step.url)
    if isinstance(step, FetchStepUrl) and is_api(step.url):
        try:
            found = api_wanted(step.url, step.url)
        except IngestError:
            return  # as above
        check_api_merge(found, source.merge, step.url)


def _check_topic(source: SetPollingSource) -> None:
    step = source.fetch
    if isinstance(step, FetchStepUrl) and kafka.is_kafka(step.url):
        try:
            asked = kafka.wanted(step.url, step.url)
        except IngestError:
            return  # told of the address itself
        kafka.check_reading(asked, source.read, source.merge, step.url)


def _check_headers(step: FetchStepUrl) -> None:
    if step.headers and kafka.is_kafka(step.url):
        raise IngestError(
            f"{kafka.named(step.url)} is no address of a web server, so there are no headers to "
            "send",
            code="E0446",
            help="remove `fetch.headers`; user and password stand before the brokers",
        )
    if step.headers and is_database(step.url):
        raise IngestError(
            f"{named(step.url)} is no address of a web server, so there are no headers to send",
            code="E0470",
            help="remove `fetch.headers`; user and password stand before the host",
        )


def templates_of(step: FetchStep) -> Iterator[tuple[Path, str]]:
    """Texts of a fetch step that may hold `${{ env.X }}`, each with its path in the step."""
    match step:
        case FetchStepUrl():
            yield ("url",), step.url
            for number, header in enumerate(step.headers or ()):
                yield ("headers", number, "value"), header.value
        case FetchStepFilesGlob(path=path) if is_sftp(path):
            yield ("path",), path
        case FetchStepContainer():
            yield ("image",), step.image
            for number, argument in enumerate(step.args or ()):
                yield ("args", number), argument
            for number, variable in enumerate(step.env or ()):
                yield ("env", number, "value"), variable.value or ""
        case FetchStepMqtt():
            yield ("password",), step.password or ""
        case FetchStepEthereumLogs():
            yield ("nodeUrl",), step.node_url or ""
