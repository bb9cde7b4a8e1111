"""Topics of Kafka as sources: `kafka://broker:9092/orders?key=id`, on librdkafka's mock cluster."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.check import problems_of
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.kafka import consumer
from odfbuild.ingest.fetch.kafka.address import named, topic_of, wanted
from odfbuild.ingest.fetch.kafka.fetch import Positions, _begin, parse_positions
from odfbuild.ingest.fetch.url import check_url
from odfbuild.ingest.resume import has_moved
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepNdJson,
    RequestHeader,
    SetPollingSource,
)
from tests.ingest.contexts import Poller, at
from tests.servers.kafka import PARTITIONS, Cluster, Said, kafka


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with kafka() as started:
        yield started


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"t-{abs(hash(request.node.name))}"


def source(root: Path, url: str, **settings: Any) -> Poller:
    return Poller(root, FetchStepUrl(url=url), **settings)


def rows(found: list[bytes | None]) -> list[dict[str, Any]]:
    return [json.loads(line) for data in found if data is not None for line in data.splitlines()]


def refused(root: Path, url: str, **settings: Any) -> IngestError:
    with pytest.raises(IngestError) as raised:
        source(root, url, **{"connect_seconds": 2, **settings}).poll()
    return raised.value


# --- What is read ---


def test_messages_come_once_in_the_order_of_partitions_and_offsets(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    sent = [Said(f'{{"id": {n}}}', partition=n % 3) for n in range(9)]
    cluster.send(topic, *sent)
    poller = source(tmp_path, cluster.url(topic))
    assert [row["id"] for row in rows(poller.poll())] == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert poller.poll() == []
    cluster.send(topic, Said('{"id": 9}', partition=3), Said('{"id": 10}', partition=0))
    assert [row["id"] for row in rows(poller.poll())] == [10, 9]
    assert poller.state is not None
    assert poller.state.value.endswith(" 0:4 1:3 2:3 3:1")


def test_many_messages_are_several_slices_and_a_crash_between_them_loses_none(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, *(Said(f'{{"id": {n}}}', partition=n % PARTITIONS) for n in range(22)))
    poller = source(tmp_path, cluster.url(topic), target_records=5)
    for crash in ("after", "before", "after"):
        poller.poll(crash=crash)
    assert len(rows(poller.committed)) == 10
    assert [len(rows([each])) for each in poller.poll()] == [5, 5, 2]
    assert sorted(row["id"] for row in rows(poller.committed)) == list(range(22))
    undisturbed = source(tmp_path, cluster.url(topic), target_records=5)
    undisturbed.poll()
    assert undisturbed.committed == poller.committed, "the same bytes"


def test_a_run_ends_at_the_ends_that_it_saw_at_its_start(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, '{"id": 0}', '{"id": 1}')
    step = FetchStepUrl(url=cluster.url(topic))
    found = []
    for fetched in fetch(step, None, at(tmp_path, target_records=1)):
        assert fetched.file is not None
        found.append(fetched.file.read_bytes())
        cluster.send(topic, '{"id": 2}')
    assert [row["id"] for row in rows(found)] == [0, 1]


def test_key_partition_offset_time_and_headers_are_columns_if_the_address_names_them(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(
        topic,
        Said('{\n "a": "x\\ny", "n": 1.10}', "k", 2, (("trace", "7"),)),
        Said("{}", None, 2),
    )
    query = "key=id&partition=part&offset=at&timestamp=event_time&headers=about"
    poller = source(tmp_path, cluster.url(topic, query))
    found = poller.poll()
    assert rows(found) == [
        {
            "id": "k",
            "part": 2,
            "at": 0,
            "event_time": "2026-01-01T00:00:00.000000Z",
            "about": {"trace": "7"},
            "a": "x\ny",
            "n": 1.1,
        },
        {"part": 2, "at": 1, "event_time": "2026-01-01T00:00:00.000000Z", "about": {}},
    ]
    assert found[0] is not None
    assert b'"n": 1.10}' in found[0], "numbers stay as they are spelled"


def test_keys_in_json_are_members_and_those_of_the_value_go_before(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(
        topic,
        Said('{"id": 1, "v": 2}', '{"id": 8, "shop": "a"}'),
        Said('{"v": 3}', '{"id": 9}'),
    )
    poller = source(tmp_path, cluster.url(topic, "keyFormat=json"))
    assert rows(poller.poll()) == [{"shop": "a", "id": 1, "v": 2}, {"id": 9, "v": 3}]
    cluster.send(topic, Said('{"v": 4}', "17"))
    poller = source(tmp_path, cluster.url(topic, "keyFormat=json&key=id&tombstones=skip"))
    assert rows(poller.poll())[-1] == {"id": 17, "v": 4}


def test_several_lines_in_a_message_are_several_records(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, '{"id": 1}\n{"id": 2}\n', '{"id": 3}')
    poller = source(tmp_path, cluster.url(topic, "format=ndjson&offset=at"))
    assert [(row["id"], row["at"]) for row in rows(poller.poll())] == [(1, 0), (2, 0), (3, 1)]


def test_tombstones_retract_are_left_out_or_stop_the_run(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, Said('{"v": 1}', "a"), Said(None, "a"), Said('{"v": 2}', "b"))
    error = refused(tmp_path, cluster.url(topic, "key=id"))
    assert error.code == "E0445"
    assert "offset 1 of partition 0" in error.message
    skipping = source(tmp_path, cluster.url(topic, "key=id&tombstones=skip"))
    assert [row["v"] for row in rows(skipping.poll())] == [1, 2]
    retracting = source(tmp_path, cluster.url(topic, "key=id&tombstones=retract"))
    assert rows(retracting.poll()) == [
        {"id": "a", "op": 0, "v": 1},
        {"id": "a", "op": 1},
        {"id": "b", "op": 0, "v": 2},
    ]


def test_a_run_of_nothing_but_tombstones_that_are_left_out_moves_on(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, Said(None, "a"), Said(None, "b"))
    poller = source(tmp_path, cluster.url(topic, "tombstones=skip"))
    assert poller.poll() == [None]
    assert poller.state is not None
    assert " 0:2 " in poller.state.value
    assert poller.poll() == []


def test_avro_is_read_by_the_schemas_of_a_folder(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    import fastavro

    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "raw", "type": "bytes"},
        {"name": "note", "type": ["null", "string"]},
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "7.avsc").write_text(json.dumps(schema))
    body = io.BytesIO()
    record = {"id": 5, "at": 1_767_225_600_000, "raw": b"\x01", "note": None}
    fastavro.schemaless_writer(body, schema, record)
    cluster.send(topic, Said(b"\0" + (7).to_bytes(4, "big") + body.getvalue()))
    url = cluster.url(topic, "format=avro&schemas=schemas")
    poller = source(tmp_path, url)
    assert rows(poller.poll()) == [
        {"id": 5, "at": "2026-01-01T00:00:00.000000Z", "raw": "AQ==", "note": None}
    ]
    cluster.send(topic, Said(b"\0" + (8).to_bytes(4, "big") + body.getvalue()))
    with pytest.raises(
        IngestError, match=r"the file of its schema is not there: 8\.avsc"
    ) as raised:
        poller.poll()
    assert raised.value.help == "put it into schemas/, as the registry has it"


def test_protobuf_is_read_by_the_descriptor_sets_of_a_folder(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    types = written_types(tmp_path / "schemas" / "7.desc")
    order = types("shop.Order")(id=5, tags=["a", "b"], state=1)
    order.at.FromJsonString("2026-01-01T00:00:00.5Z")
    order.lines.add(sku="tea", cents=2**63)
    order.more["k"] = 1
    line = types("shop.Order.Line")(sku="cup")
    begin = b"\0" + (7).to_bytes(4, "big")
    cluster.send(
        topic,
        Said(begin + b"\0" + order.SerializeToString()),  # the first type of the file
        Said(begin + b"\x04\0\0" + line.SerializeToString()),  # the first type in the first type
    )
    poller = source(tmp_path, cluster.url(topic, "format=protobuf&schemas=schemas"))
    assert rows(poller.poll()) == [
        {
            "id": 5,
            "at": "2026-01-01T00:00:00.500Z",
            "lines": [{"sku": "tea", "cents": 2**63, "raw": ""}],
            "tags": ["a", "b"],
            "more": {"k": 1},
            "state": "PAID",
        },
        {"sku": "cup", "cents": 0, "raw": ""},
    ]
    cluster.send(topic, Said(b"\0" + (8).to_bytes(4, "big") + b"\0"))
    with pytest.raises(IngestError, match=r"the file of its schema is not there: 8\.desc"):
        poller.poll()


def test_protobuf_without_a_registry_has_one_type(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    types = written_types(tmp_path / "orders.desc")
    cluster.send(topic, Said(types("shop.Order.Line")(raw=b"\x01").SerializeToString()))
    url = cluster.url(topic, "format=protobuf&schemas=orders.desc&message=shop.Order.Line")
    poller = source(tmp_path, url)
    assert rows(poller.poll()) == [{"sku": "", "cents": 0, "raw": "AQ=="}]
    cluster.send(topic, Said(b"\xff"))
    with pytest.raises(IngestError, match=r"does not fit the types of orders\.desc") as raised:
        poller.poll()
    assert raised.value.code == "E0445"
    with pytest.raises(IngestError, match=r"does not fit the types of orders\.desc"):
        source(tmp_path, url.replace("Order.Line", "Ordr")).poll()


@pytest.mark.parametrize("beginning", [b"", b"\x80", b"\x01", b"\x02\x09", b"\xff" * 6])
def test_protobuf_that_names_no_type_is_told(
    tmp_path: Path, cluster: Cluster, topic: str, beginning: bytes
) -> None:
    written_types(tmp_path / "schemas" / "7.desc")
    cluster.send(topic, Said(b"\0" + (7).to_bytes(4, "big") + beginning))
    error = refused(tmp_path, cluster.url(topic, "format=protobuf&schemas=schemas"))
    assert error.code == "E0445"


def written_types(file: Path) -> Callable[[str], Any]:
    """A descriptor set as `protoc` writes it, and the classes of its messages."""
    from google.protobuf import descriptor_pb2, timestamp_pb2
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    field = descriptor_pb2.FieldDescriptorProto
    order = descriptor_pb2.DescriptorProto(
        name="Order",
        field=[
            field(name="id", number=1, type=field.TYPE_INT64, label=1),
            field(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp"),
            field(name="lines", number=3, type=11, label=3, type_name=".shop.Order.Line"),
            field(name="tags", number=4, type=field.TYPE_STRING, label=3),
            field(name="more", number=5, type=11, label=3, type_name=".shop.Order.MoreEntry"),
            field(name="state", number=6, type=14, label=1, type_name=".shop.State"),
        ],
        nested_type=[
            descriptor_pb2.DescriptorProto(
                name="Line",
                field=[
                    field(name="sku", number=1, type=field.TYPE_STRING, label=1),
                    field(name="cents", number=2, type=field.TYPE_UINT64, label=1),
                    field(name="raw", number=3, type=field.TYPE_BYTES, label=1),
                ],
            ),
            descriptor_pb2.DescriptorProto(
                name="MoreEntry",
                field=[
                    field(name="key", number=1, type=field.TYPE_STRING, label=1),
                    field(name="value", number=2, type=field.TYPE_INT32, label=1),
                ],
                options=descriptor_pb2.MessageOptions(map_entry=True),
            ),
        ],
    )
    imported = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(imported)
    values = [("OPEN", 0), ("PAID", 1)]
    made = descriptor_pb2.FileDescriptorProto(
        name="orders.proto",
        package="shop",
        syntax="proto3",
        dependency=[imported.name],
        message_type=[order],
        enum_type=[
            descriptor_pb2.EnumDescriptorProto(
                name="State",
                value=[
                    descriptor_pb2.EnumValueDescriptorProto(name=name, number=number)
                    for name, number in values
                ],
            )
        ],
    )
    file.parent.mkdir(exist_ok=True)
    files = descriptor_pb2.FileDescriptorSet(file=[imported, made])
    file.write_bytes(files.SerializeToString())
    pool = DescriptorPool()
    for each in files.file:
        pool.Add(each)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(name))


def in_transactions(cluster: Cluster, topic: str, *transactions: tuple[str, ...]) -> None:
    """Send messages; each transaction ends in a marker, to which the mock gives no checksum."""
    from confluent_kafka import Producer

    cluster.make(topic)
    producer = Producer({"bootstrap.servers": cluster.brokers, "transactional.id": topic})
    producer.init_transactions(60)
    for values in transactions:
        producer.begin_transaction()
        for each in values:
            producer.produce(topic, each, partition=0)
        producer.commit_transaction(60)


def test_the_marker_of_a_transaction_is_no_message(
    tmp_path: Path, cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = consumer._configuration
    unchecked = {"check.crcs": False}
    monkeypatch.setattr(consumer, "_configuration", lambda *given: made(*given) | unchecked)
    in_transactions(cluster, topic, ('{"id": 1}', '{"id": 2}'), ('{"id": 3}',))
    poller = source(tmp_path, cluster.url(topic))
    assert rows(poller.poll()) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert " 0:5 " in poller.state.value, "each marker has an offset"
    assert poller.poll() == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("tls=on&ca=ca.pem", "the ca 'ca.pem' of"),
        ("format=avro&schemas=schemas", "the schemas 'schemas' of"),
        ("tls=on&ca=bad.pem", "a certificate or its key of"),
    ],
)
def test_files_of_an_address_that_cannot_be_used_are_told(
    tmp_path: Path, cluster: Cluster, topic: str, query: str, said: str
) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    error = refused(tmp_path, cluster.url(topic, query))
    assert (error.code, said in error.message) == ("E1661", True)
    assert error.notes
    assert error.help


def test_messages_with_a_wrong_checksum_are_told(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    in_transactions(cluster, topic, ('{"id": 1}',))
    error = refused(tmp_path, cluster.url(topic))
    assert error.code == "E1660"
    assert "offset 1" in error.notes[0]


# --- What is wrong ---


@pytest.mark.parametrize("value", ["no json", "[1]", "1", "\ud800", '{"at": 1}'])
def test_a_message_that_is_no_record_is_told_with_its_place_and_blocks_nothing_else(
    tmp_path: Path, cluster: Cluster, topic: str, value: str
) -> None:
    data = value.encode(errors="surrogatepass")
    cluster.send(topic, '{"id": 1}', Said(data))
    url = cluster.url(topic, "offset=at")
    error = refused(tmp_path, url)
    assert (error.code, error.help is None) == ("E0445", False)
    assert f"offset 1 of partition 0 of {cluster.url(topic)}" in error.message
    skipping = source(tmp_path, url, bad_records={"*": "skip"})
    (found,) = skipping.poll()
    assert found is not None
    assert len(found.splitlines()) == 2, "the read step counts it as a bad record"


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = refused(tmp_path, f"kafka://127.0.0.1:{port}/t")
    assert error.code == "E0440"
    assert error.location is not None


def test_a_cluster_that_dies_while_it_is_read_loses_nothing(tmp_path: Path, topic: str) -> None:
    with kafka() as dying:
        dying.send(topic, *(f'{{"id": {n}}}' for n in range(3)))
        poller = source(tmp_path, dying.url(topic), target_records=1, idle_seconds=2)
        context = at(tmp_path, target_records=2, idle_seconds=2, connect_seconds=2)
        steps = fetch(poller.step, None, context)
        first = next(steps)
        dying.kill()
        # What the client has fetched already may still come; more than that cannot.
        try:
            rest = list(steps)
        except IngestError as error:
            assert error.code == "E0440"
            rest = []
        assert first.state is not None
        assert " 0:2 " in first.state.value
        assert len(rest) <= 1


def test_a_cluster_that_was_made_anew_is_not_taken_for_the_one_before(
    tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    with kafka() as gone:
        gone.send(topic, '{"id": 1}')
        poller = source(tmp_path, gone.url(topic))
        assert len(rows(poller.poll())) == 1
    cluster.send(topic, '{"id": 2}', '{"id": 3}')
    poller.step = FetchStepUrl(url=cluster.url(topic))
    before = poller.state
    with pytest.raises(IngestError) as raised:
        poller.poll()
    assert raised.value.code == "E0444"
    assert poller.state == before


def test_a_topic_that_is_not_there_is_told(tmp_path: Path, cluster: Cluster) -> None:
    error = refused(tmp_path, cluster.url("nowhere"))
    assert error.code == "E0442"


def test_a_login_that_is_refused_is_told_without_the_password(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "very-secret-word")
    error = refused(tmp_path, f"kafka://{cluster.brokers}/t?tls=on")
    assert error.code in ("E0440", "E0441")
    assert "SSL" in error.notes[0]
    url = f"kafka://reader:${{{{ env.KAFKA_PASSWORD }}}}@{cluster.brokers}/t?sasl=PLAIN"
    error = refused(tmp_path, url)
    assert error.code == "E0441"
    assert "very-secret-word" not in repr((error.message, error.notes, error.help))


def test_messages_that_were_deleted_unread_are_an_error_unless_gaps_are_allowed() -> None:
    state = Positions("c", {0: 5, 1: 0}).state()
    bounds = {0: (9, 20), 1: (0, 3), 2: (4, 4)}
    with pytest.raises(IngestError) as raised:
        _begin("c", bounds, state, "kafka://b/t", skips_gaps=False)
    assert raised.value.code == "E0443"
    assert "4 offsets of partition 0" in raised.value.message
    assert _begin("c", bounds, state, "kafka://b/t", skips_gaps=True) == {0: 9, 1: 0, 2: 4}


@pytest.mark.parametrize(
    ("cluster_id", "bounds", "state"),
    [
        ("other", {0: (0, 9)}, "c 0:5"),
        ("c", {0: (0, 4)}, "c 0:5"),
        ("c", {0: (0, 9)}, "c 0:5 1:0"),
        ("c", {0: (0, 9)}, "2026-01-01 what is this"),
    ],
)
def test_another_topic_of_the_same_name_is_not_taken_for_the_one_that_was_read(
    cluster_id: str, bounds: dict[int, tuple[int, int]], state: str
) -> None:
    with pytest.raises(IngestError) as raised:
        _begin(cluster_id, bounds, state, "kafka://b/t", skips_gaps=True)
    assert raised.value.code == "E0444"


# --- Addresses ---


@pytest.mark.parametrize(
    "url",
    [
        "kafka://",
        "kafka:///t",
        "kafka://b:9092",
        "kafka://b:9092/",
        "kafka://b:9092/a/b",
        "kafka://b:port/t",
        "kafka://b,/t",
        "kafka://user@b/t",
        "kafka://b/t?topic=x",
        "kafka://b/t?key=",
        "kafka://b/t?key=a&key=b",
        "kafka://b/t?key=a&offset=a",
        "kafka://b/t?format=thrift",
        "kafka://b/t?format=protobuf",
        "kafka://b/t?format=avro",
        "kafka://b/t?schemas=schemas",
        "kafka://b/t?format=avro&schemas=s&message=m",
        "kafka://b/t?sasl=SCRAM-SHA-512",
        "kafka://user:@b/t",
        "kafka://:secret@b/t",
        "kafka://b/t?tls=on&certificateKey=a.pem",
        "kafka://b/t?tombstones=retract",
        "kafka://b/t?tls=on&certificate=a.pem",
        "kafka://b/t?ca=ca.pem",
        "kafka://b/t?password=x",
    ],
)
def test_a_wrong_address_is_told_before_anything_is_asked(url: str) -> None:
    with pytest.raises(IngestError) as raised:
        check_url(url)
    assert raised.value.code == "E0446"
    assert raised.value.help


def test_an_address_says_brokers_login_and_topic() -> None:
    url = "kafka://me:p%40ss@a:9092,[::1]:9093/my.topic_1?tls=on&sasl=SCRAM-SHA-512&ca=ca.pem"
    check_url(url)
    asked = wanted(url, url)
    assert (asked.brokers, asked.topic) == ("a:9092,[::1]:9093", "my.topic_1")
    assert (asked.user, asked.password, asked.sasl) == ("me", "p@ss", "SCRAM-SHA-512")
    assert named(url) == "kafka://a:9092,[::1]:9093/my.topic_1"
    check_url("kafka://me:${{ env.P }}@${{ env.BROKERS }}/t")


def test_other_brokers_of_a_topic_are_the_same_source() -> None:
    assert topic_of("kafka://u:p@a:1/t?key=x") == topic_of("kafka://b/t") != topic_of("kafka://b/u")


def test_positions_are_read_as_they_were_written() -> None:
    found = Positions("MkU3", {10: 2, 9: 1})
    assert found.state() == "MkU3 9:1 10:2"
    assert parse_positions(found.state()) == found


def polling(url: str, merge: MergeStrategy, read: Any = None, **more: Any) -> SetPollingSource:
    return SetPollingSource(
        fetch=FetchStepUrl(url=url, **more), read=read or ReadStepNdJson(), merge=merge
    )


def test_a_definition_that_contradicts_itself_is_told_without_a_cluster() -> None:
    url, keyed = "kafka://b/t", "kafka://b/t?key=id&tombstones=retract"
    key = ("id",)
    wrong = [
        (polling(url, MergeStrategyAppend(), ReadStepCsv()), "E0447"),
        (polling(url, MergeStrategySnapshot(primary_key=key)), "E0447"),
        (polling(keyed, MergeStrategyLedger(primary_key=key)), "E0447"),
        (
            polling(url, MergeStrategyAppend(), headers=(RequestHeader(name="a", value="b"),)),
            "E0446",
        ),
    ]
    for each, code in wrong:
        assert [error.code for _, error in problems_of(each)] == [code]
    assert list(problems_of(polling(keyed, MergeStrategyUpsertStream(primary_key=key)))) == []
    assert has_moved(FetchStepUrl(url=url), None)
