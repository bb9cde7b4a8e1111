import contextlib
import random
from dataclasses import replace

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import mqtt
from odfbuild.ingest.fetch.inbox import Journal, rename_inbox
from odfbuild.ingest.fetch.mqtt import check_topics
from odfbuild.odf.model import FetchStepMqtt, MqttQos, MqttTopicSubscription
from tests.ingest.contexts import Poller
from tests.servers.broker import PASSWORD, USER, mosquitto


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with mosquitto(tmp_path_factory.mktemp("broker")) as running:
        yield running


def source_of(broker, tmp_path, topic, qos=MqttQos.AtLeastOnce, **more):
    settings = {"mqtt_idle_seconds": 0.3, **more.pop("settings", {})}
    given = {
        "host": "127.0.0.1",
        "port": broker.port,
        "topics": (MqttTopicSubscription(path=topic, qos=qos),),
        "username": USER,
        "password": "${{ env.ODFBUILD_TEST_MQTT }}",
    }
    step = FetchStepMqtt(**{**given, **more})
    return Poller(tmp_path, step, dataset=topic.replace("/", "."), **settings)


def arrived(source):
    """What a run commits that messages wait for; one more run when the broker is slow to send."""
    return next(filter(None, (source.poll() for _ in range(20))), [])


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("ODFBUILD_TEST_MQTT", PASSWORD)


@pytest.mark.parametrize("qos", list(MqttQos)[1:], ids=lambda qos: qos.name)
def test_messages_between_two_runs_wait_at_the_broker(broker, tmp_path, qos):
    topic = f"wait/{qos.name}"
    source = source_of(broker, tmp_path, topic, qos)
    assert source.poll() == []
    broker.publish(topic, '{"n": 1}', '{"n":\n 2}', "  ")
    assert arrived(source) == [b'{"n": 1}\n{"n":  2}\n']
    assert source.poll() == []
    broker.publish(topic, '{"n": 3}')
    assert arrived(source) == [b'{"n": 3}\n']


def test_a_full_batch_leaves_the_rest_for_the_next_run(broker, tmp_path):
    source = source_of(broker, tmp_path, "many", settings={"target_records": 10})
    source.poll()
    broker.publish("many", *map(str, range(25)))
    for _ in range(50):
        source.poll()
        if len(b"".join(source.committed).split()) == 25:
            break
    lines = b"".join(source.committed).split()
    assert sorted(map(int, lines)) == list(range(25))
    assert len(source.committed) >= 2
    assert all(len(batch.split()) < 20 for batch in source.committed)


@pytest.mark.parametrize("qos", list(MqttQos), ids=lambda qos: qos.name)
def test_a_retained_message_that_changed_between_two_runs_is_seen_once(broker, tmp_path, qos):
    topics = [f"state/{qos.name}/{name}" for name in "ab"]
    for topic in topics:
        broker.publish(topic, topic[-1] + "1", qos=qos.value, retain=True)
    source = source_of(broker, tmp_path, f"state/{qos.name}/+", qos)
    assert sorted(b"".join(arrived(source)).split()) == [b"a1", b"b1"]
    assert source.poll() == []
    broker.publish(topics[0], "a2", qos=qos.value, retain=True)
    broker.publish(topics[0], "a3", qos=qos.value, retain=True)
    # Of those that nobody waited for the last one is left.
    assert b"".join(arrived(source)).split()[-1] == b"a3"
    assert (source.poll(), source.poll()) == ([], [])
    # One that is not retained leaves the retained one as it is.
    broker.publish(topics[0], "a4", qos=qos.value)
    assert [source.poll(), source.poll()][1] == []
    assert b"".join(source.committed).count(b"a3") == 1


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_around_a_commit_repeats_no_retained_message(broker, tmp_path, crash):
    topic = f"kept/{crash}"
    source = source_of(broker, tmp_path, topic, MqttQos.AtMostOnce)
    source.poll()
    broker.publish(topic, "1", retain=True)
    source.poll(crash=crash)
    broker.publish(topic, "2", retain=True)
    for _ in range(3):
        source.poll()
    assert b"".join(source.committed).split() == [b"1", b"2"]


def test_what_is_retained_is_no_news_to_who_was_there_before_that_was_known(broker, tmp_path):
    source = source_of(broker, tmp_path, "upgraded", MqttQos.AtMostOnce)
    broker.publish("upgraded", "1", retain=True)
    assert arrived(source) == [b"1\n"]
    next(tmp_path.rglob("retained")).unlink()  # as earlier releases left it
    assert source.poll() == []
    broker.publish("upgraded", "2", retain=True)
    assert arrived(source) == [b"2\n"]


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_around_a_commit_neither_loses_nor_repeats_a_message(broker, tmp_path, crash):
    topic = f"crash/{crash}"
    source = source_of(broker, tmp_path, topic)
    source.poll()
    broker.publish(topic, "1", "2")
    source.poll(crash=crash)
    broker.publish(topic, "3")
    for _ in range(20):
        source.poll()
        if b"3" in b"".join(source.committed):
            break
    assert b"".join(source.committed).split() == [b"1", b"2", b"3"]


def test_a_crash_before_the_journal_is_written_leaves_the_messages_at_the_broker(
    broker, tmp_path, monkeypatch
):
    source = source_of(broker, tmp_path, "early")
    source.poll()
    broker.publish("early", "1", "2", "3")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):

        def interrupted(*_):
            raise KeyboardInterrupt

        patch.setattr(Journal, "append", interrupted)
        arrived(source)
    assert arrived(source) == [b"1\n2\n3\n"]


def test_a_crash_before_the_acknowledgement_repeats_nothing(broker, tmp_path, monkeypatch):
    source = source_of(broker, tmp_path, "late")
    source.poll()
    broker.publish("late", "1", "2", "3")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):

        def interrupted(*_):
            raise KeyboardInterrupt

        patch.setattr(mqtt._Session, "acknowledge", interrupted)
        arrived(source)
    arrived(source)
    assert b"".join(source.committed) == b"1\n2\n3\n"


def test_an_acknowledgement_that_got_lost_repeats_nothing(broker, tmp_path, monkeypatch):
    source = source_of(broker, tmp_path, "lost")
    source.poll()
    broker.publish("lost", "1", "2", "3")
    with monkeypatch.context() as patch:
        patch.setattr(mqtt._Session, "acknowledge", lambda self: None)
        assert arrived(source) == [b"1\n2\n3\n"]
    broker.publish("lost", "3", "4")
    assert arrived(source) == [b"3\n4\n"]


def test_a_dataset_that_was_renamed_keeps_its_session_and_its_messages(broker, tmp_path):
    source = source_of(broker, tmp_path, "renamed")
    source.poll()
    broker.publish("renamed", "1")
    source.poll(crash="before")
    broker.publish("renamed", "2")
    for _ in range(2):  # the second time it was done already
        rename_inbox(tmp_path / ".odfbuild-inbox", "renamed", "Other")
    source.settings["dataset"] = "other"
    taken = tmp_path / ".odfbuild-inbox" / "taken" / "x"
    taken.parent.mkdir()
    taken.write_text("of another one")
    rename_inbox(tmp_path / ".odfbuild-inbox", "other", "taken")
    rename_inbox(tmp_path / ".odfbuild-inbox", "taken", "other")
    assert len(list(taken.parent.parent.glob("taken.*/x"))) == 1
    assert arrived(source) == [b"1\n", b"2\n"]


def test_messages_are_taken_while_others_cannot_be_committed_and_committed_without_a_broker(
    tmp_path,
):
    with mosquitto(tmp_path / "broker") as broker:
        source = source_of(broker, tmp_path, "stuck")
        source.poll()
        for number in ("1", "2"):
            broker.publish("stuck", number)
            source.poll(crash="before")
    with pytest.raises(IngestError, match="cannot fetch from mqtt"):
        source.poll()
    assert source.committed == [b"1\n", b"2\n"]


def test_topics_that_left_the_definition_bring_nothing_more(broker, tmp_path):
    source = source_of(broker, tmp_path, "old/+")
    source.poll()
    broker.publish("old/x", "1")
    broker.publish("new/x", "lost: nobody asked for it yet")
    source.step = replace(
        source.step,
        topics=(MqttTopicSubscription(path="$share/group/new/#", qos=MqttQos.AtLeastOnce),),
    )
    assert source.poll() == []
    broker.publish("old/x", "2")
    broker.publish("new/x", "3")
    assert arrived(source) == [b"3\n"]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_to_runs_every_message_comes_once_and_in_order(broker, tmp_path, seed):
    rng = random.Random(seed)
    topic = f"random/{seed}"
    settings = {"mqtt_idle_seconds": 0.15, "target_records": 4}
    source = source_of(broker, tmp_path, topic, settings=settings)
    source.poll()
    sent = 0

    def interrupted(*_):
        raise KeyboardInterrupt

    for _ in range(8):
        more = rng.randrange(5)
        broker.publish(topic, *map(str, range(sent, sent + more)))
        sent += more
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            match rng.randrange(6):
                case 0:
                    source.poll(crash="before")
                case 1:
                    source.poll(crash="after")
                case 2:
                    patch.setattr(Journal, "append", interrupted)
                    source.poll()
                case 3:
                    patch.setattr(mqtt._Session, "acknowledge", interrupted)
                    source.poll()
                case 4:
                    patch.setattr(mqtt._Session, "acknowledge", lambda self: None)
                    source.poll()
                case _:
                    source.poll()
    quiet = 0
    while quiet < 3:  # a slow broker may leave one run without messages
        quiet = 0 if source.poll() else quiet + 1
    assert list(map(int, b"".join(source.committed).split())) == list(range(sent))


def test_messages_survive_a_restart_of_the_broker(tmp_path):
    with mosquitto(tmp_path / "broker") as broker:
        source = source_of(broker, tmp_path, "lasting")
        source.poll()
        broker.publish("lasting", "1")
        port = broker.port
    with mosquitto(tmp_path / "broker", port):
        assert arrived(source) == [b"1\n"]


def test_the_port_of_secure_brokers_is_spoken_to_over_tls(tmp_path, monkeypatch):
    import trustme

    authority = trustme.CA()
    certificate = tmp_path / "server.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(certificate)
    with mosquitto(tmp_path / "broker", certificate=certificate) as broker:
        monkeypatch.setattr(mqtt, "_SECURE_PORT", broker.port)
        source = source_of(broker, tmp_path, "safe", host="localhost")
        with pytest.raises(IngestError, match="CERTIFICATE_VERIFY_FAILED"):
            source.poll()
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(trusted)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert source.poll() == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"password": "wrong-password"}, "refused"),
        ({"port": 9}, "cannot fetch from mqtt://127.0.0.1:9"),
        ({"host": "no-such-host.invalid"}, "no-such-host"),
    ],
)
def test_a_broker_that_cannot_be_used_is_explained(broker, tmp_path, more, said):
    source = source_of(broker, tmp_path, "x", settings={"connect_seconds": 2}, **more)
    with pytest.raises(IngestError, match=said) as caught:
        source.poll()
    assert "wrong-password" not in str(caught.value)


@pytest.mark.parametrize("path", ["a", "a/b", "+", "#", "a/+/c/#", "$share/g/a/#", "/", "a//b"])
def test_topics_and_patterns_of_topics_are_taken(path):
    check_topics(FetchStepMqtt(host="x", port=1, topics=(MqttTopicSubscription(path=path),)))


@pytest.mark.parametrize("paths", [[], [""], ["a", "b#"], ["a/#/b"], ["a+/b"], ["$share/g/#/a"]])
def test_what_is_no_topic_is_refused(paths):
    topics = tuple(MqttTopicSubscription(path=path) for path in paths)
    with pytest.raises(IngestError) as caught:
        check_topics(FetchStepMqtt(host="x", port=1, topics=topics))
    assert caught.value.code == "E0416"
