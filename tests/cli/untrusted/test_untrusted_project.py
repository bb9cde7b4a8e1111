"""What CI runs on a pull request of a stranger starts nothing, reads nothing else, reaches nobody.

The system calls of the program are watched (strace) while projects try to lead it elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from odfbuild.engine.spark.internals.process import spark_home
from odfbuild.engine.spark.session.java import find_java
from odfbuild.plan.queries.changed import ChangedQueries
from odfbuild.store.disposable import user_cache
from odfbuild.store.machine_key import key_file
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import NO_JVM, Tiny
from tests.cli.service import Service

VERBS = (
    "validate",
    "lint",
    "fmt --check",
    "fmt --diff",
    "git check",
    "plan --md",
    "plan --json",
    "plan --out plan.json",
    "verify --integrity",
)
SECRET = "kind: [tok-private-4711\n"

Trap = Callable[[Tiny, Path], None]


def root_of(name: str, fetch: str, more: str = "") -> str:
    return f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
{more}      read: {{kind: Csv, header: true, schema: [event_time TIMESTAMP, id BIGINT]}}
      merge: {{kind: Append}}
"""


def sources(tiny: Tiny, private: Path) -> None:
    """Sources that name files, addresses and programs, and data that is a link."""
    (tiny.root / "data" / "link.csv").symlink_to(private / "secret.csv")
    pipe = f"      prepare: [{{kind: Pipe, command: [touch, {private}/ran]}}]\n"
    for name, fetch, more in (
        ("file", f"{{kind: Url, url: 'file://{private}/secret.csv'}}", ""),
        ("up", "{kind: Url, url: 'file:../private/secret.csv'}", ""),
        ("link", "{kind: Url, url: 'file:data/link.csv'}", ""),
        ("glob", f"{{kind: FilesGlob, path: '{private}/*.csv', order: ByName}}", ""),
        ("zip", f"{{kind: FilesGlob, path: '{private}/*.zip', order: ByName}}", ""),
        ("web", "{kind: Url, url: 'http://127.0.0.1:9/x?${{ env.TOKEN }}'}", ""),
        ("store", "{kind: FilesGlob, path: 's3://bucket/*.csv', order: ByName}", ""),
        ("broker", "{kind: Mqtt, host: 127.0.0.1, port: 9, topics: [{path: t}]}", ""),
        ("image", f"{{kind: Container, image: x, command: [touch, {private}/ran]}}", ""),
        ("pipe", "{kind: FilesGlob, path: data/1.csv, order: ByName}", pipe),
    ):
        (tiny.root / "datasets" / f"{name}.yaml").write_text(root_of(name, fetch, more))


def definition(tiny: Tiny, private: Path) -> None:
    """A definition that is a link."""
    (tiny.root / "datasets" / "x.yaml").symlink_to(private / "secret.yaml")


def folder(tiny: Tiny, private: Path) -> None:
    """A folder of definitions that is a link."""
    (tiny.root / "datasets" / "more").symlink_to(private)


def include(tiny: Tiny, private: Path) -> None:
    """A template that includes a link."""
    (tiny.root / "templates").mkdir()
    (tiny.root / "templates" / "x.j2").symlink_to(private / "secret.yaml")
    (tiny.root / "datasets" / "x.yaml.j2").write_text("{% include 'x.j2' %}\n")


def above(tiny: Tiny, private: Path) -> None:
    """A template that includes what lies above."""
    (tiny.root / "datasets" / "x.yaml.j2").write_text("{% include '../../private/secret.yaml' %}\n")


def elsewhere(tiny: Tiny, private: Path) -> None:
    """Definitions below another folder."""
    text = (tiny.root / "odfbuild.yaml").read_text()
    (tiny.root / "odfbuild.yaml").write_text(text.replace(": datasets", ": ../private"))


def state(tiny: Tiny, private: Path) -> None:
    """Chains below another folder."""
    text = (tiny.root / "odfbuild.yaml").read_text()
    (tiny.root / "odfbuild.yaml").write_text(text.replace(": chains", ": ../private"))


def settings(tiny: Tiny, private: Path) -> None:
    """An odfbuild.yaml that is a link."""
    (tiny.root / "odfbuild.yaml").unlink()
    (tiny.root / "odfbuild.yaml").symlink_to(private / "secret.yaml")


def head(tiny: Tiny, private: Path) -> None:
    """A head that is a link, which messages would show."""
    refs = tiny.root / "chains" / "root" / "refs"
    refs.mkdir(parents=True)
    (refs / "head").symlink_to(private / "secret.yaml")


def block(tiny: Tiny, private: Path) -> None:
    """A block that is a link."""
    (tiny.root / "chains" / "root" / "blocks").mkdir(parents=True)
    (tiny.root / "chains" / "root" / "refs").mkdir()
    name = "f1620" + "0" * 64
    (tiny.root / "chains" / "root" / "refs" / "head").write_text(name)
    (tiny.root / "chains" / "root" / "blocks" / name).symlink_to(private / "secret.yaml")


def cache(tiny: Tiny, private: Path) -> None:
    """A cache that is a link."""
    (tiny.root / ".odfbuild").symlink_to(private)


def saved_plan(tiny: Tiny, private: Path) -> None:
    """Links where a plan is saved, and where it is written on the way there."""
    (tiny.root / "plan.json").symlink_to(private / "secret.yaml")
    (tiny.root / ".plan.json.part").symlink_to(private / "secret.csv")


TRAPS: tuple[Trap, ...] = (
    *(sources, definition, folder, include, above, elsewhere),
    *(state, settings, head, block, cache, saved_plan),
)


@dataclass(frozen=True)
class Watched:
    """What commands said, and what they asked of the system."""

    said: str
    opened: frozenset[Path]
    programs: frozenset[str]
    connected: tuple[str, ...]


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """What is none of the project's business, beside it."""
    folder = tmp_path / "private"
    folder.mkdir()
    for name in ("secret.yaml", "secret.csv", "secret.zip"):
        (folder / name).write_text(SECRET)
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A project in a repository of its own."""
    tiny = Tiny.fresh(tmp_path / "project")
    subprocess.run(["git", "init", "-q", tiny.root], check=True)
    return tiny


@pytest.fixture
def service() -> Iterator[Service]:
    started = Service()
    yield started
    started.server.shutdown()
    started.server.server_close()


def watched(tiny: Tiny, verbs: tuple[str, ...], env: dict[str, str]) -> Watched:
    """Run commands one after the other in one process, and look at its system calls."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tiny.root.parent / "strace.log"
    script = "import sys; from odfbuild.cli.main import run\nfor v in sys.argv[1:]: run(v.split())"
    calls = "trace=execve,execveat,open,openat,openat2,connect"
    strace: list[str | Path] = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-s",
        "4096",
        "--seccomp-bpf",
        "-e",
        calls,
        "-o",
        log,
    ]
    done = subprocess.run(
        [*strace, sys.executable, "-c", script, *verbs],
        cwd=tiny.root,
        env={**os.environ, "NO_COLOR": "1", "TMPDIR": str(temporary(tiny)), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = log.read_text(errors="replace").splitlines()
    return Watched(
        said=done.stdout + done.stderr,
        opened=frozenset(_opened(lines)),
        programs=frozenset(_programs(lines)),
        connected=tuple(line for line in lines if " connect(" in line and "nscd" not in line),
    )


def temporary(tiny: Tiny) -> Path:
    folder = tiny.root.parent / "tmp"
    folder.mkdir(exist_ok=True)
    return folder


def _opened(lines: list[str]) -> Iterator[Path]:
    """Files that were opened, wherever links led; folders only list what there is."""
    for line in lines:
        found = re.search(r"open\w*\(.*\) = \d+<(/.*)>$", line)
        if found and "O_DIRECTORY" not in line and "O_PATH" not in line:
            yield Path(found[1].removesuffix(" (deleted)"))


def _programs(lines: list[str]) -> Iterator[str]:
    for line in lines:
        found = re.search(r'execve(?:at)?\((?:AT_FDCWD, )?"([^"]+)".*\) = 0$', line)
        if found:
            yield os.path.realpath(found[1])


def known_files(tiny: Tiny) -> tuple[str, ...]:
    """Where the program, its libraries and what it keeps lie."""
    key = key_file()
    assert key is not None
    return (
        *map(os.path.realpath, {*sysconfig.get_paths().values(), *filter(None, sys.path)}),
        *map(os.path.realpath, (sys.prefix, sys.base_prefix, str(user_cache()), str(key))),
        *map(str, (tiny.root, temporary(tiny), Path.home() / ".gitconfig")),
        *("/usr", "/lib", "/proc", "/sys", "/dev", "/etc/ld.so", "/etc/local", "/etc/passwd"),
        *("/etc/nsswitch.conf", "/etc/mime.types", "/etc/gitconfig", "/etc/os-release"),
        *("/etc/host", "/etc/resolv.conf", "/etc/gai.conf", "/etc/group", "/etc/java", "/etc/ssl"),
        *("/etc/alternatives", "/etc/timezone"),
    )


def assert_kept_in(found: Watched, tiny: Tiny, private: Path, programs: set[str]) -> None:
    """Nothing of the private folder was opened or shown, nor any other file of strangers."""
    assert "4711" not in found.said
    assert not (private / "ran").exists()
    assert sorted(p.name for p in private.iterdir()) == ["secret.csv", "secret.yaml", "secret.zip"]
    assert {path.read_text() for path in private.iterdir()} == {SECRET}
    known = known_files(tiny)
    assert [str(path) for path in found.opened if not str(path).startswith(known)] == []
    assert found.programs - programs == set()


def test_the_watch_sees_what_is_opened_and_started(tiny: Tiny, private: Path) -> None:
    found = watched(tiny, (f"fmt --check {private}/secret.yaml",), NO_JVM)
    assert private / "secret.yaml" in found.opened
    assert os.path.realpath(sys.executable) in found.programs


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_commands_of_a_pull_request_open_start_and_reach_nothing_else(
    tiny: Tiny, private: Path, trap: Trap
) -> None:
    trap(tiny, private)
    found = watched(tiny, VERBS, {**NO_JVM, "TOKEN": "tok-4711-private"})
    git = shutil.which("git")
    assert git is not None
    assert_kept_in(found, tiny, private, {os.path.realpath(p) for p in (sys.executable, git)})
    assert found.connected == ()
    assert "Traceback" not in found.said and "E0999" not in found.said


def test_the_comment_of_a_plan_reads_the_plan_and_reaches_the_service_of_the_job_alone(
    tiny: Tiny, private: Path, service: Service
) -> None:
    sources(tiny, private)
    saved_plan(tiny, private)
    outside = temporary(tiny)
    (outside / "event.json").write_text('{"pull_request": {"number": 7}}')
    env = {
        **NO_JVM,
        "TOKEN": "tok-4711-private",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": service.address,
        "GITHUB_EVENT_PATH": str(outside / "event.json"),
        "GITHUB_OUTPUT": str(outside / "outputs"),
        "GITHUB_REPOSITORY": "ann/flights",
        "GITHUB_STEP_SUMMARY": str(outside / "summary.md"),
        "GITHUB_TOKEN": "tok-of-the-service",
        "GITHUB_WORKSPACE": str(tiny.root),
    }
    found = watched(tiny, ("plan --out plan.json", "ci comment plan.json"), env)
    git = shutil.which("git")
    assert git is not None
    assert_kept_in(found, tiny, private, {os.path.realpath(p) for p in (sys.executable, git)})
    assert "The comment was created." in found.said
    (comment,) = service.comments
    assert "4711" not in comment["body"] and "### Plan: " in comment["body"]
    port = service.address.rpartition(":")[2]
    assert found.connected
    assert all(f"htons({port})" in line and "127.0.0.1" in line for line in found.connected)
    assert "tok-of-the-service" not in found.said


STOLEN = (
    "SELECT * FROM csv.`{private}/secret.csv`",
    "SELECT * FROM text.`file://{private}/secret.yaml`",
    "SELECT java_method('java.lang.System', 'getenv', 'TOKEN') AS t FROM source",
    "SELECT reflect('java.lang.Runtime', 'getRuntime') AS t FROM source",
)


@pytest.mark.spark
def test_what_asks_the_engine_starts_java_alone_and_talks_to_it_alone(
    tiny: Tiny, private: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, query in enumerate(STOLEN):
        tiny.derive(f"bad{number}", query.format(private=private))
    # Chains as somebody brings them who commits what no release of ours would.
    monkeypatch.setattr(ChangedQueries, "refused", lambda *_: ())
    share(PlainEngine(), monkeypatch)
    Program(tiny.root, monkeypatch, capsys)("apply", "-y")
    assert (tiny.root / "chains" / "bad3" / "data").is_dir()
    for number in range(len(STOLEN)):
        (tiny.root / "datasets" / f"bad{number}.yaml").unlink()
    sources(tiny, private)
    verbs = ("validate --engine", "verify")
    found = watched(tiny, verbs, {"TOKEN": "tok-4711-private"})
    home = find_java().home.resolve()
    ours = replace(
        found,
        opened=frozenset(path for path in found.opened if not path.is_relative_to(home)),
        programs=frozenset(each for each in found.programs if not each.startswith(f"{home}/")),
    )
    # Hadoop asks once whether there is a `setsid`, by a shell that prints its number. Spark asks
    # for the size of pages, and removes its folders by `rm`.
    asked = ("bash", "setsid", "getconf", "rm")
    shell = {os.path.realpath(found) for found in map(shutil.which, asked) if found}
    assert_kept_in(ours, tiny, private, {os.path.realpath(sys.executable), *shell})
    assert spark_home().is_dir()
    assert all(re.search(r"127\.0\.0\.1|::1|AF_UNIX", line) for line in found.connected)
    assert "was checked by the engine" in found.said
    told = re.findall(r"! (bad\d)\n +error\[(E\d+)\]: its step cannot be recomputed", found.said)
    assert told == [(f"bad{number}", "E0824") for number in range(len(STOLEN))]
    assert "recomputed 5 steps of 5 derivatives" in found.said


OWNED = {
    "resources": "  engine: {conf: {spark.driver.resource.gpu.discoveryScript: /bin/x}}\n",
    "plugins": "  engine: {conf: {spark.plugins: evil.Plugin}}\n",
    "listeners": "  engine: {conf: {spark.extraListeners: evil.Listener}}\n",
    "jars": "  engine: {conf: {spark.jars: evil.jar}}\n",
    "packages": "  engine: {conf: {spark.jars.packages: 'evil:evil:1'}}\n",
    "class path": "  engine: {conf: {spark.driver.extraClassPath: evil}}\n",
    "java options": "  engine: {conf: {spark.executor.extraJavaOptions: -javaagent:evil.jar}}\n",
    "python": "  engine: {conf: {spark.pyspark.python: evil}}\n",
    "file systems": "  engine: {conf: {spark.hadoop.fs.file.impl: evil.Fs}}\n",
    "serializers": "  engine: {conf: {spark.serializer: evil.Serializer}}\n",
    "event logs": "  engine: {conf: {spark.eventLog.dir: /tmp}}\n",
    "secrets": "  engine: {conf: {spark.executor.memory: '${env:TOKEN}'}}\n",
    "clusters": "  engine: {master: 'spark://evil.example.org:7077'}\n",
    "servers": "  engine: {master: 'sc://evil.example.org:15002'}\n",
    "sandbox": "  engine: {sandbox: off}\n",
    "containers": "  ingest: {container: {runtime: [/bin/evil]}}\n",
    "volumes": "  ingest: {container: {arguments: ['--volume=/:/host']}}\n",
    "pipes": "  ingest: {pipes: ['*']}\n",
}
"""What only the owner of a machine may say."""


@pytest.mark.parametrize("lines", OWNED.values(), ids=OWNED)
def test_a_project_cannot_say_what_a_machine_runs(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str
) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(lines)
    program = Program(tiny.root, monkeypatch, capsys)
    for verb in ("plan", "validate --engine", "lint", "apply -y"):
        said = program(*verb.split())
        assert said.code == 1
        assert "error[E0170]" in said.err
        assert "odfbuild.yaml:" in said.err
        assert "machine.yaml" in said.err


def machine(folder: Path, content: str) -> Path:
    file = folder / "machine.yaml"
    file.write_text(f"kind: Machine\nversion: 1\ncontent:\n{content}")
    return file


@pytest.mark.parametrize(
    "lines", [v for k, v in OWNED.items() if k not in ("secrets", "servers", "clusters")]
)
def test_the_owner_of_a_machine_can(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str
) -> None:
    monkeypatch.setenv("ODFBUILD_CONFIG", str(machine(tiny.root.parent, lines)))
    assert Program(tiny.root, monkeypatch, capsys)("plan").code == 0


def test_settings_of_a_machine_go_before_those_of_a_project(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from odfbuild.project.config import load_config

    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(
            "  engine: {memory: 2g, sandbox: required, stepSeconds: 7,\n"
            "    conf: {spark.executor.memory: 1g, spark.executor.cores: '2'}}\n"
        )
    text = """\
  engine:
    memory: 3g
    master: spark://host:7077
    conf: {spark.executor.memory: 4g, spark.driver.host: 10.0.0.1}
  ingest:
    pipes: [jq]
    container: {runtime: [podman, --remote]}
  folders: [/srv/in]
"""
    (tmp_path / "odfbuild").mkdir()
    machine(tmp_path / "odfbuild", text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = load_config(tiny.root)
    assert (found.engine.memory, found.engine.sandbox, found.engine.step_seconds) == (
        "3g",
        "required",
        7,
    )
    assert found.engine.master == "spark://host:7077"
    assert found.engine.conf == {
        "spark.executor.memory": "4g",
        "spark.executor.cores": "2",
        "spark.driver.host": "10.0.0.1",
    }
    assert (found.ingest.pipes, found.ingest.container_runtime) == (("jq",), ("podman", "--remote"))
    assert found.folders == (Path("/srv/in"),)
    monkeypatch.setenv("ODFBUILD_PIPES", "zstd 'my tool'")
    monkeypatch.setenv("ODFBUILD_FOLDERS", "/data:/more")
    monkeypatch.setenv("ODFBUILD_CONTAINER_RUNTIME", "docker")
    found = load_config(tiny.root)
    assert found.ingest.pipes == ("zstd", "my tool")
    assert found.ingest.container_runtime == ("docker",)
    assert found.folders == (Path("/data"), Path("/more"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("  engin: {}\n", "E0104"),
        ("  engine: {memory: much}\n", "E0105"),
        ("  engine: {conf: {spark.sql.ansi.enabled: 'false'}}\n", "E0118"),
    ],
)
def test_what_is_wrong_with_the_configuration_of_a_machine_has_its_place(
    tiny: Tiny,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: str,
) -> None:
    file = machine(tiny.root.parent, text)
    monkeypatch.setenv("ODFBUILD_CONFIG", str(file))
    said = Program(tiny.root, monkeypatch, capsys)("plan")
    assert f"error[{code}]" in said.err
    assert f"--> {file}:4:" in said.err
    monkeypatch.setenv("ODFBUILD_CONFIG", str(file.with_name("nowhere.yaml")))
    said = Program(tiny.root, monkeypatch, capsys)("plan")
    assert said.code == 1 and "error[E0103]" in said.err


def test_planning_looks_into_folders_that_the_machine_names(
    tiny: Tiny, private: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (private / "in.csv").write_text("event_time,id\n2024-01-01 00:00:00,1\n")
    fetch = f"{{kind: Url, url: 'file://{private}/in.csv'}}"
    (tiny.root / "datasets" / "file.yaml").write_text(root_of("file", fetch))
    (tiny.root / "datasets" / "x.yaml").symlink_to(private / "good.yaml")
    (private / "good.yaml").write_text(root_of("good", "{kind: Url, url: 'http://x/'}"))
    program = Program(tiny.root, monkeypatch, capsys)
    assert "error[E0940]" in program("plan").out
    monkeypatch.setenv("ODFBUILD_FOLDERS", str(private))
    assert "good" in program.ok("plan", "--json").out
