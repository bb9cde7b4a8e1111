"""What py4j says about a JVM that ended reaches nobody; what others log does."""

from __future__ import annotations

import logging

import pytest

from odfbuild.engine.contract import Engine

pytestmark = pytest.mark.spark


def test_only_py4j_is_silenced(spark_engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener = Listener()
    root.addHandler(listener)
    try:
        for path in ("/site-packages/py4j/java_gateway.py", "/project/report.py"):
            root.handle(root.makeRecord("root", logging.ERROR, path, 1, path, (), None))
    finally:
        root.removeHandler(listener)
    assert heard == ["/project/report.py"]
