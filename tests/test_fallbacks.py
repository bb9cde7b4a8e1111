"""A fast way that fails is told in the log, and is an error where that is asked for."""

import logging
import subprocess
import sys

import pytest

from odfbuild.errors import PlanError
from odfbuild.fallbacks import STRICT, falling_back, fell_back


def test_the_log_of_the_module_says_what_goes_on_instead(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(STRICT)
    with (
        caplog.at_level(logging.INFO, "odfbuild.some.module"),
        falling_back("odfbuild.some.module", "files are read one by one"),
    ):
        raise ValueError("an odd file")
    [record] = caplog.records
    assert record.name == "odfbuild.some.module"
    assert record.message == "files are read one by one: ValueError: an odd file"


def test_other_errors_than_those_named_pass_through() -> None:
    with pytest.raises(ValueError), falling_back(__name__, "nothing is kept", OSError):
        raise ValueError


def test_in_tests_a_failure_that_nobody_foresaw_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError), falling_back(__name__, "the slower way goes on"):
        raise ZeroDivisionError


@pytest.mark.parametrize("error", [OSError("full"), PlanError("wrong", code="E0301")])
def test_what_is_wrong_with_disks_and_definitions_is_foreseen(error: Exception) -> None:
    fell_back(__name__, "the slower way goes on", error)


def test_importing_odfbuild_changes_no_logger() -> None:
    program = """
import logging
import odfbuild, odfbuild.api.project, odfbuild.cli.main, odfbuild.plan.build
import odfbuild.sql.parsed, odfbuild.engine.spark.start
changed = {
    name: (each.level, each.handlers, each.filters)
    for name, each in {"": logging.getLogger(), **logging.Logger.manager.loggerDict}.items()
    if isinstance(each, logging.Logger) and name.split(".")[0] in ("", "odfbuild", "sqlglot")
    and (each.filters or each.handlers or each.level not in (0, logging.WARNING))
}
assert not changed, changed
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_v_shows_the_log_on_stderr() -> None:
    program = """
from odfbuild.cli import main
from odfbuild.fallbacks import fell_back
main._show_log(verbose=True)
main._show_log(verbose=True)
fell_back("odfbuild.engine", "the slower way goes on", OSError("no room"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stderr == "odfbuild.engine: the slower way goes on: OSError: no room\n"
