import subprocess

import pytest

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.odf.model import EnvVar, FetchStepContainer
from tests.ingest.contexts import Poller
from tests.servers.containers import IMAGE, docker_on, podman_with_image

COUNTER = """\
n=${ODF_ETAG:-0}
[ "$n" = "$LAST" ] && { printf %s "$n" > $ODF_NEW_ETAG_PATH; exit; }
n=$((n + 1)); echo "record $n of $ODF_BATCH_SIZE"
printf %s $n > $ODF_NEW_ETAG_PATH
[ "$n" = "$LAST" ] || : > $ODF_NEW_HAS_MORE_DATA_PATH
"""
HALF = """\
n=${ODF_ETAG:-0}; n=$((n + 1)); echo "record $n"
[ $n = 2 ] && [ -n "$BROKEN" ] && { echo "no record 2" >&2; exit 3; }
printf %s $n > $ODF_NEW_ETAG_PATH
[ $n = 3 ] || : > $ODF_NEW_HAS_MORE_DATA_PATH
"""


@pytest.fixture(scope="module")
def podman():
    with podman_with_image() as made:
        yield made


@pytest.fixture(scope="module")
def docker(podman):
    with docker_on(podman) as made:
        yield made


@pytest.fixture(params=["podman", "docker"])
def runtime(request):
    return request.getfixturevalue(request.param)


def containers(podman):
    command = [*podman.runtime, "ps", "--all", "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def source_of(podman, tmp_path, script, **more):
    settings = {"container_runtime": podman.runtime, "container_arguments": podman.arguments}
    env = tuple(EnvVar(name=name, value=value) for name, value in more.pop("env", {}).items())
    step = FetchStepContainer(image=IMAGE, command=("/bin/sh", "-c"), args=(script,), env=env)
    return Poller(tmp_path, step, **settings, **more)


def test_a_container_goes_on_from_its_state_while_it_has_more(podman, tmp_path):
    source = source_of(podman, tmp_path, COUNTER, env={"LAST": "3"}, target_records=7)
    assert source.poll(crash="after") == [b"record 1 of 7\n"]
    assert source.poll(crash="before") == []
    assert source.poll() == [b"record 2 of 7\n", b"record 3 of 7\n"]
    assert (source.state.kind, source.state.value) == ("odf/etag", "3")
    assert source.poll() == []


def test_the_command_line_of_docker_does_the_same(docker, tmp_path):
    source = source_of(docker, tmp_path, COUNTER, env={"LAST": "3"}, target_records=7)
    assert source.poll(crash="after") == [b"record 1 of 7\n"]
    assert source.poll(crash="before") == []
    assert source.poll() == [b"record 2 of 7\n", b"record 3 of 7\n"]
    assert source.poll() == []


def test_what_fails_half_way_goes_on_where_it_was_committed(runtime, podman, tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN", "yes")
    source = source_of(runtime, tmp_path, HALF, env={"BROKEN": None})
    with pytest.raises(IngestError, match="exit status 3") as caught:
        source.poll()
    assert caught.value.notes == ("it says: no record 2",)
    assert (source.committed, source.state.value) == ([b"record 1\n"], "1")
    monkeypatch.setenv("BROKEN", "")
    assert source.poll() == [b"record 2\n", b"record 3\n"]
    assert containers(podman) == ""


def test_what_prints_without_end_is_ended(runtime, podman, tmp_path):
    source = source_of(runtime, tmp_path, "while :; do echo aaaaaaaaaaa; done", max_bytes=10_000)
    with pytest.raises(IngestError, match="more than 10,000"):
        source.poll()
    assert source.state is None
    assert containers(podman) == ""


def test_what_takes_too_long_is_ended(runtime, tmp_path):
    source = source_of(runtime, tmp_path, "echo x; while :; do :; done", total_seconds=2)
    with pytest.raises(IngestError, match="took more than 2 seconds"):
        source.poll()
    assert (source.committed, source.state) == ([], None)


def test_times_of_modification_are_a_state_too(podman, tmp_path):
    script = (
        'echo "since $ODF_LAST_MODIFIED"; echo 2024-05-06T07:08:09+02:00 > '
        "$ODF_NEW_LAST_MODIFIED_PATH"
    )
    source = source_of(podman, tmp_path, script)
    assert source.poll() == [b"since \n"]
    assert (source.state.kind, source.state.value) == ("odf/last-modified", "2024-05-06T05:08:09Z")
    with pytest.raises(IngestError, match="nothing new"):
        source.poll()


def test_values_of_the_environment_reach_the_program_and_no_message(podman, tmp_path, monkeypatch):
    monkeypatch.setenv("ODFBUILD_TEST_TOKEN", "geheim-5678")
    script = 'echo "$TOKEN $PLAIN"; echo "not with $TOKEN" >&2; exit 3'
    env = {"TOKEN": "${{ env.ODFBUILD_TEST_TOKEN }}", "PLAIN": "plain"}
    with pytest.raises(IngestError, match="exit status 3") as caught:
        source_of(podman, tmp_path, script, env=env).poll()
    assert caught.value.notes == ("it says: not with ***",)
    source = source_of(podman, tmp_path, script.replace("exit 3", ":"), env=env)
    assert source.poll() == [b"geheim-5678 plain\n"]


def test_a_variable_that_is_not_set_is_named_before_anything_runs(podman, tmp_path):
    source = source_of(podman, tmp_path, ":", env={"ODFBUILD_TEST_ABSENT": None})
    with pytest.raises(IngestError, match="ODFBUILD_TEST_ABSENT") as caught:
        source.poll()
    assert caught.value.code == "E0408"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo x; : > $ODF_NEW_HAS_MORE_DATA_PATH", "not from where to go on"),
        ("echo tuesday > $ODF_NEW_LAST_MODIFIED_PATH", "'tuesday' as time"),
        ("ln -s /etc/passwd $ODF_NEW_ETAG_PATH", "new-etag cannot be read: Too many levels"),
        ("mkfifo $ODF_NEW_ETAG_PATH", "new-etag is not a file"),
        ("mkdir $ODF_NEW_LAST_MODIFIED_PATH", "new-last-modified is not a file"),
        ("printf '\\377' > $ODF_NEW_ETAG_PATH", "new-etag is not text"),
    ],
)
def test_a_container_that_misbehaves_is_explained(podman, tmp_path, script, said):
    source = source_of(podman, tmp_path, script)
    with pytest.raises(IngestError, match=said):
        source.poll()
    assert source.state is None


def test_an_image_that_is_not_there_is_explained(podman, tmp_path):
    source = source_of(podman, tmp_path, ":")
    source.step = FetchStepContainer(image="localhost/no-such-image")
    with pytest.raises(IngestError, match="no-such-image could not be started") as caught:
        source.poll()
    assert caught.value.notes


def test_a_machine_without_a_container_runtime_is_told_which_there_are(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="no container runtime") as caught:
        Poller(tmp_path, FetchStepContainer(image="x")).poll()
    assert "podman" in str(caught.value.help)
    with pytest.raises(EnvironmentProblem, match="cannot be started"):
        Poller(tmp_path, FetchStepContainer(image="x"), container_runtime=("/nowhere/x",)).poll()
