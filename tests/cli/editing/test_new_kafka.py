"""`odfbuild new kafka` and `doctor --deep`: columns, key and merge as messages have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apply.in_process import Program
from tests.report.golden import assert_golden
from tests.servers.kafka import Cluster, Said, kafka


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with kafka() as started:
        started.send(
            "orders",
            Said('{"id": 1, "amount": 1.5, "note": null}', "1"),
            Said('{"id": 2, "amount": 2.25, "note": "x"}', "2", 1),
            Said(None, "1"),
        )
        started.send("named", Said('{"v": 1}', "a"), Said('{"v": 1}', "b"))
        started.send("plain", '{"v": 1, "at": "2026-01-01T00:00:00Z"}')
        started.make("empty")
        yield started


def proposed(odfbuild: Program, cluster: Cluster, topic: str, *options: str) -> str:
    url = cluster.url(topic)
    text = odfbuild.ok("new", "kafka", "orders", url, "-n", *options).out
    return text.replace(cluster.brokers, "broker.example.org:9092")


def test_a_topic_is_proposed_with_columns_key_and_merge(
    odfbuild: Program, cluster: Cluster
) -> None:
    assert_golden("new-kafka.txt", proposed(odfbuild, cluster, "orders").rstrip())


def test_keys_that_values_do_not_repeat_are_a_column(odfbuild: Program, cluster: Cluster) -> None:
    text = proposed(odfbuild, cluster, "named")
    assert "/named?key=key&timestamp=event_time" in text
    assert "- key STRING\n" in text
    assert "- op INT\n" in text
    text = proposed(odfbuild, cluster, "named", "--merge", "append")
    assert "kind: Append" in text
    assert "- op INT\n" not in text


def test_messages_without_keys_are_appended(odfbuild: Program, cluster: Cluster) -> None:
    text = proposed(odfbuild, cluster, "plain")
    assert "kind: Append" in text
    assert "eventTimeColumn: at" in text
    assert "timestamp=" not in text


@pytest.mark.parametrize(
    ("topic", "options", "code"),
    [
        ("empty", [], "E0143"),
        ("plain", ["--merge", "ledger"], "E0143"),
        ("plain", ["--merge", "snapshot"], "E0143"),
        ("plain", ["--key", "nothing"], "E0142"),
        ("absent", [], "E0442"),
    ],
)
def test_what_cannot_be_proposed_is_told(
    odfbuild: Program, cluster: Cluster, topic: str, options: list[str], code: str
) -> None:
    said = odfbuild("new", "kafka", "orders", cluster.url(topic), "-n", *options)
    assert said.code == 1
    assert f"error[{code}]" in said.err


def test_a_proposal_is_valid_and_doctor_tries_it(odfbuild: Program, cluster: Cluster) -> None:
    from odfbuild.api.doctor.project import sources, topics
    from odfbuild.project.load import load_project

    odfbuild.ok("new", "kafka", "shop.orders", cluster.url("orders"))
    assert "all valid" in odfbuild.ok("validate").out
    project = load_project(odfbuild.root)
    [check] = topics(sources(project), project.config)
    assert check.detail == "answered for shop.orders (3 messages)"


def test_another_address_is_told(odfbuild: Program) -> None:
    said = odfbuild("new", "kafka", "orders", "https://example.org")
    assert "error[E0143]" in said.err


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("kafka://b.example.org/t", {"open-transport"}),
        ("kafka://127.0.0.1:9092,b.example.org:9092/t", {"open-transport"}),
        ("kafka://me:open-word@b.example.org/t?tls=on", {"written-secret"}),
        ("kafka://me:${{ env.P }}@b.example.org/t?tls=on", set()),
        ("kafka://127.0.0.1:9092/t", set()),
    ],
)
def test_lint_tells_of_open_connections_and_written_passwords(
    odfbuild: Program, address: str, found: set[str]
) -> None:
    text = f"""\
kind: DatasetSnapshot
version: 1
content:
  name: orders
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{address}"}}
      read: {{kind: NdJson}}
      merge: {{kind: Append}}
    - kind: SetInfo
      description: Orders
"""
    (odfbuild.root / "datasets" / "orders.yaml").write_text(text)
    said = odfbuild("lint", "orders").out
    assert {each for each in ("open-transport", "written-secret") if each in said} == found
