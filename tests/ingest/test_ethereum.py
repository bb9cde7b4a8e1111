"""Logs of a real EVM, which runs in this process behind JSON-RPC."""

import pyarrow.parquet as pq
import pytest
from eth_abi.abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.ethereum import node as node_module
from odfbuild.ingest.fetch.ethereum.event import parse_event
from odfbuild.ingest.fetch.ethereum.filter import parse_filter
from odfbuild.ingest.fetch.ethereum.log import COLUMNS, TOPICS, Log
from odfbuild.ingest.fetch.result import etag
from odfbuild.odf.model import FetchStepEthereumLogs
from tests.ingest.contexts import Poller
from tests.servers.chain import CHAIN, evm_node

SENT = "Sent(address indexed from, uint64 indexed number, uint256 amount, string note)"
HOLDER = bytes.fromhex("aabbccddaabbccddaabbccddaabbccddaabbccdd")


def topics(number=7):
    return [parse_event(SENT).selector, bytes(12) + HOLDER, number.to_bytes(32)]


def body(amount=10**20, note="hällo"):
    return encode(["uint256", "string"], [amount, note])


@pytest.fixture
def node(monkeypatch):
    monkeypatch.setattr(node_module, "_FIRST_WAIT", 0.01)
    with evm_node() as running:
        yield running


def source_of(node, tmp_path, settings=None, **more):
    step = FetchStepEthereumLogs(**{"chain_id": CHAIN, "node_url": node.url, **more})
    return Poller(tmp_path, step, **(settings or {}))


def numbers(source, tmp_path):
    """Poll, and tell the numbers in the events of each batch."""
    return [
        [row["event"]["number"] for row in batch]
        for batch in (_read(each, tmp_path) for each in source.poll() if each is not None)
    ]


def _read(content, tmp_path):
    file = tmp_path / "read.parquet"
    file.write_bytes(content)
    return pq.read_table(file).to_pylist()


# --- the node ---


def test_entries_have_the_columns_of_the_reference_and_the_decoded_event(node, tmp_path):
    contract = node.deploy()
    node.emit(contract, topics(), body())
    source = source_of(node, tmp_path, signature=SENT)
    (content,) = source.poll()
    (row,) = _read(content, tmp_path)
    assert list(row) == [*COLUMNS.names, "event"]
    assert row["event"] == {"from": HOLDER, "number": 7, "amount": str(10**20), "note": "hällo"}
    assert list(row["event"]) == ["from", "number", "amount", "note"]
    assert "0x" + row["address"].hex() == contract.lower()
    assert (row["block_number"], row["log_index"]) == (2, 0)
    assert row["topic0"] == parse_event(SENT).selector
    assert row["topic3"] is None
    assert row["block_timestamp"] is not None
    assert source.state.value == f"2@0x{row['block_hash'].hex()}"
    node.timestamps = False
    (content,) = source_of(node, tmp_path).poll()
    (row,) = _read(content, tmp_path)
    assert row["block_timestamp"] is None
    assert "event" not in row


def test_only_blocks_that_are_new_are_asked_for(node, tmp_path):
    contract = node.deploy()
    node.emit(contract, topics(1), body())
    source = source_of(node, tmp_path, signature=SENT)
    assert numbers(source, tmp_path) == [[1]]
    asked = len(node.asked("eth_getLogs"))
    assert source.poll() == []
    assert len(node.asked("eth_getLogs")) == asked
    node.mine(3)
    before = source.state
    assert source.poll() == []
    assert source.state == before
    node.emit(contract, topics(2), body())
    assert numbers(source, tmp_path) == [[2]]
    assert node.asked("eth_getLogs")[-1][0]["fromBlock"] == "0x3"


def test_blocks_without_entries_are_remembered_once_they_cost_more_than_a_request(node, tmp_path):
    node.mine(25)
    source = source_of(node, tmp_path, {"ethereum_block_stride": 10})
    assert source.poll() == [None]
    assert source.state.value.startswith("25@")
    assert source.poll() == []


def test_batches_end_with_a_block_and_a_crash_loses_nothing(node, tmp_path):
    contract = node.deploy()
    for number in range(6):
        node.emit(contract, topics(number), body())
    source = source_of(
        node, tmp_path, {"ethereum_block_stride": 2, "target_records": 2}, signature=SENT
    )
    source.poll(crash="after")
    source.poll(crash="before")
    source.poll()
    batches = [_read(content, tmp_path) for content in source.committed]
    assert [row["event"]["number"] for batch in batches for row in batch] == list(range(6))
    assert len(batches) > 2


def test_a_node_that_bounds_requests_is_asked_for_less(node, tmp_path):
    contract = node.deploy()
    for number in range(5):
        node.emit(contract, topics(number), body())
    node.most_blocks = 2
    assert numbers(source_of(node, tmp_path, signature=SENT), tmp_path) == [list(range(5))]
    node.most_blocks = 0
    with pytest.raises(IngestError, match="refuses the logs of block 0: query spans"):
        source_of(node, tmp_path).poll()


def test_the_newest_blocks_can_be_left_for_later(node, tmp_path):
    contract = node.deploy()
    node.emit(contract, topics(1), body())
    node.mine(2)
    node.emit(contract, topics(2), body())
    source = source_of(node, tmp_path, {"ethereum_confirmations": 2}, signature=SENT)
    assert numbers(source, tmp_path) == [[1]]
    node.mine(2)
    assert numbers(source, tmp_path) == [[2]]


def test_a_reorganised_chain_is_noticed(node, tmp_path):
    contract = node.deploy()
    node.emit(contract, topics(1), body())
    source = source_of(node, tmp_path)
    snapshot = node.tester.take_snapshot()
    node.emit(contract, topics(2), body())
    source.poll()
    node.tester.revert_to_snapshot(snapshot)
    with pytest.raises(IngestError, match="up to block 3") as caught:
        source.poll()
    assert "does not have that block yet" in caught.value.notes[1]
    node.emit(contract, topics(3), body())
    with pytest.raises(IngestError, match="up to block 3") as caught:
        source.poll()
    assert "reorganised" in caught.value.notes[1]
    assert caught.value.code == "E0419"


def test_a_filter_narrows_what_the_node_is_asked_for_and_does_the_rest_itself(node, tmp_path):
    mine, other = node.deploy(), node.deploy()
    for contract in (mine, other):
        for number in (1, 2, 3):
            node.emit(contract, topics(number), body())
    source = source_of(
        node,
        tmp_path,
        signature=SENT,
        filter=f"address = X'{mine[2:]}' and block_number > 2 and not (topic2 = X'{2:064x}')",
    )
    assert numbers(source, tmp_path) == [[1, 3]]
    ((asked,),) = node.asked("eth_getLogs")
    assert asked["address"] == [mine.lower()]
    assert asked["fromBlock"] == "0x3"
    assert asked["topics"] == [["0x" + parse_event(SENT).selector.hex()]]


def test_an_entry_of_another_shape_is_named(node, tmp_path):
    contract = node.deploy()
    node.emit(contract, topics(), body())
    with pytest.raises(IngestError, match="entry 0 of block 2 does not fit") as caught:
        source_of(
            node,
            tmp_path,
            signature="Sent(address indexed a, uint64 b, uint256 c, string d)",
        ).poll()
    assert str(caught.value.location) == "fetch.signature"
    node.emit(contract, topics(8), b"\xff" * 40)
    with pytest.raises(IngestError, match="entry 0 of block 3 does not fit"):
        source_of(node, tmp_path, signature=SENT).poll()


def test_a_node_in_trouble_is_asked_again(node, tmp_path):
    node.failing = [503, 429]
    node.deploy()
    assert source_of(node, tmp_path).poll() == []
    node.failing = [503] * 20
    with pytest.raises(IngestError, match="503 Service Unavailable, 4 times"):
        source_of(node, tmp_path).poll()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"chain_id": 1}, f"a node of chain {CHAIN}, not of chain 1"),
        ({"node_url": "http://127.0.0.1:9"}, "cannot read logs"),
        ({"node_url": "wss://127.0.0.1:9"}, "wss://127.0.0.1:9 cannot be asked"),
        ({"node_url": None}, "no node for chain 1337"),
        ({"filter": "nothing = 1"}, "no column 'nothing'"),
        ({"signature": "Sent("}, "is not the signature"),
    ],
)
def test_what_cannot_be_read_is_explained(node, tmp_path, more, said):
    with pytest.raises(IngestError, match=said) as caught:
        source_of(node, tmp_path, {"attempts": 1}, **more).poll()
    assert caught.value.help


def test_the_node_of_a_chain_comes_from_the_settings(node, tmp_path, monkeypatch):
    monkeypatch.setenv("ODFBUILD_TEST_NODE", node.url)
    nodes = {str(CHAIN): "${{ env.ODFBUILD_TEST_NODE }}/key"}
    source = source_of(node, tmp_path, {"ethereum_nodes": nodes}, node_url=None)
    node.mine(1)
    assert source.poll() == []
    assert node.asked("eth_getLogs")


def test_the_state_of_another_kind_of_source_is_not_taken_for_a_block(node, tmp_path):
    source = source_of(node, tmp_path)
    source.state = etag("file.csv")
    with pytest.raises(IngestError, match="which is no block"):
        source.poll()


# --- signatures ---


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("event Transfer(address indexed from, address to, uint value);",
         "Transfer(address,address,uint256)"),
        ("A()", "A()"),
        ("A(\n  uint8[] indexed,\n  bytes32[2][] b\n)", "A(uint8[],bytes32[2][])"),
        ("A((address who, int amount)[] indexed parts, bool)", "A((address,int256)[],bool)"),
        ("A(tuple(uint a, tuple(string) b) c)", "A((uint256,(string)))"),
    ],
)  # fmt: skip
def test_a_signature_is_read_as_the_contract_hashes_it(text, canonical):
    assert parse_event(text).signature == canonical


def test_the_selector_is_the_one_that_everybody_knows():
    selector = parse_event("Transfer(address indexed from,address indexed to,uint256 v)").selector
    assert selector.hex() == "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


@pytest.mark.parametrize(
    "text",
    ["", "Transfer", "A(", "A(uint9 x)", "A(uint256 a, uint256 a)", "A(int x y)", "A(address,)",
     "A(x)", "A(uint264)", "A(uint256 indexed a b)", "A(bytes33)", "A((uint)", "1A(uint)"],
)  # fmt: skip
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(IngestError, match="is not the signature"):
        parse_event(text)


@settings(deadline=None)
@given(
    amount=st.integers(-(2**255), 2**255 - 1),
    small=st.integers(0, 2**64 - 1),
    pairs=st.lists(st.tuples(st.binary(min_size=20, max_size=20), st.booleans()), max_size=3),
)
def test_values_of_every_kind_are_decoded(amount, small, pairs):
    event = parse_event("E(int256 amount, uint64 small, (address who, bool ok)[] pairs, bytes4 x)")
    types = ["int256", "uint64", "(address,bool)[]", "bytes4"]
    shown = [("0x" + who.hex(), ok) for who, ok in pairs]
    log = entry(topic0=event.selector, data=encode(types, [amount, small, shown, b"abcd"]))
    (found,) = event.decode([log]).to_pylist()
    assert found == {
        "amount": str(amount),
        "small": small,
        "pairs": [{"who": who, "ok": ok} for who, ok in pairs],
        "x": b"abcd",
    }


def test_an_indexed_text_is_only_there_as_its_hash():
    event = parse_event("E(string indexed name)")
    (found,) = event.decode([entry(topic0=event.selector, topic1=b"h" * 32)]).to_pylist()
    assert found == {"name": b"h" * 32}


# --- filters ---


def entry(**more):
    values = {
        "block_number": 5, "block_hash": b"b", "block_timestamp": None, "transaction_index": 1,
        "transaction_hash": b"t", "log_index": 0, "address": b"a", "data": b"",
    }  # fmt: skip
    return Log(**{**dict.fromkeys(TOPICS), **values, **more})


_bytes = st.sampled_from([b"a", b"b", b"c"])
_entries = st.builds(
    entry, block_number=st.integers(0, 6), address=_bytes, topic0=_bytes | st.none(), data=_bytes
)
_leaves = st.one_of(
    st.builds(
        "block_number {} {}".format,
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.integers(0, 6),
    ),
    st.builds("{} >= block_number".format, st.integers(0, 6)),
    st.builds("block_number between {} and {}".format, st.integers(0, 6), st.integers(0, 6)),
    st.builds(
        lambda column, values: f"{column} in ({', '.join(values)})",
        st.sampled_from(["address", "topic0", "data"]),
        st.lists(_bytes.map(lambda value: f"X'{value.hex()}'"), min_size=1, max_size=2),
    ),
    st.sampled_from(["topic0 is null", "topic0 is not null", "true", "false"]),
)
_conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=6,
)


@settings(deadline=None)  # a database is started for each example
@given(condition=_conditions, logs=st.lists(_entries, min_size=1, max_size=8))
def test_a_filter_accepts_what_a_database_does_and_the_node_is_asked_for_no_less(condition, logs):
    import duckdb
    import pyarrow as pa

    wanted = parse_filter(condition)
    accepted = [n for n, log in enumerate(logs) if wanted.accepts(log)]
    table = pa.table(
        {
            "n": range(len(logs)),
            **{
                name: [getattr(log, name) for log in logs]
                for name in ("block_number", "address", "data")
            },
            "topic0": pa.array([log.topic0 for log in logs], pa.binary()),
        }
    )
    text = condition
    for value in (b"a", b"b", b"c"):
        text = text.replace(f"X'{value.hex()}'", f"'\\x{value.hex()}'::BLOB")
    with duckdb.connect() as database:
        database.register("logs", table)
        expected = database.sql(f"SELECT n FROM logs WHERE {text} ORDER BY n").fetchall()
    assert accepted == [n for (n,) in expected]
    reach = wanted.reach
    for number in accepted:
        log = logs[number]
        assert reach.first <= log.block_number <= reach.last
        assert reach.address is None or log.address in reach.address
        assert reach.topics[0] is None or log.topic0 in reach.topics[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be used"),
        ("address =", "cannot be parsed"),
        ("select 1", "not a condition"),
        ("true; true", "not a condition"),
        ("address = 'text'", "compared with bytes"),
        ("address = X'0'", "odd number"),
        ("block_number = X'00'", "compared with a whole number"),
        ("block_number + 1 = 2", "where a column of the logs should"),
        ("block_timestamp > 5", "do not tell `block_timestamp`"),
        ("upper(address) = X'00'", "where a column"),
        ("topic0 = eth_event_selector('x')", "not the signature"),
        ("topic0 = eth_event_selector(topic1)", "compared with bytes"),
        ("log_index in (select 1)", "not a condition"),
        ("logs.address = X'00'", "no column"),
        ("address like 'x'", "not a condition"),
    ],
)
def test_what_a_filter_cannot_say_is_refused(text, said):
    with pytest.raises(IngestError, match=said) as caught:
        parse_filter(text)
    assert caught.value.help
