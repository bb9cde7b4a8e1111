"""Traces and metrics reach a receiver of OTLP, which reads them by the official messages."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Receiver:
    """A server that keeps what it gets."""

    url: str = ""
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    raw: bytes = b""

    def take(self, path: str, body: bytes) -> None:
        self.raw += body
        if path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))

    @property
    def spans(self) -> dict[str, Any]:
        found = [
            span
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return {each.name: each for each in found}

    @property
    def resource(self) -> dict[str, str]:
        (resource, *_) = self.traces[0].resource_spans
        return {each.key: each.value.string_value for each in resource.resource.attributes}

    def numbers(self, name: str, key: str) -> dict[str, float]:
        """The newest numbers of a metric, by an attribute."""
        found = {}
        for request in self.metrics:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = [*metric.sum.data_points, *metric.histogram.data_points]
                        for point in points if metric.name == name else ():
                            value = getattr(point, "as_int", None)
                            found[attributes(point)[key]] = point.count if value is None else value
        return found


def attributes(found: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found.attributes
    }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            kept.take(self.path, gzip.decompress(body) if packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    yield kept
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def on(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """The receiver that the standard variables name."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    return receiver


def test_a_run_is_a_trace_with_a_span_for_each_dataset(
    tiny: Tiny, odfbuild: Program, on: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    odfbuild.apply()
    spans = on.spans
    assert set(spans) == {"odfbuild apply", "dataset root", "dataset derived"}
    run = spans["odfbuild apply"]
    _, trace, parent, _ = PARENT.split("-")
    assert (run.trace_id.hex(), run.parent_span_id.hex()) == (trace, parent)
    assert {each.parent_span_id for name, each in spans.items() if each is not run} == {run.span_id}
    told = attributes(run)
    assert (told["odfbuild.project"], told["odfbuild.affected"]) == ("tiny", 2)
    assert told["odfbuild.exit_code"] == 0
    root = attributes(spans["dataset root"])
    head = tiny.workspace().projections()["root"].head
    assert (root["odfbuild.records"], root["odfbuild.head"]) == (3, str(head))
    assert root["odfbuild.status"] == "committed"
    assert [each.name for each in spans["dataset root"].events] == ["commit"]
    assert spans["dataset root"].end_time_unix_nano <= run.end_time_unix_nano
    assert on.resource["service.name"] == "odfbuild"
    assert on.numbers("odfbuild.records", "odfbuild.dataset") == {"root": 3, "derived": 3}
    assert on.numbers("odfbuild.dataset.duration", "odfbuild.dataset") == {"root": 1, "derived": 1}


def test_failures_are_errors_in_the_trace_without_values_of_records(
    tiny: Tiny, odfbuild: Program, on: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  checks: [{match: [root], acceptedValues: {value: [1, 2]}}]\n")
    (tiny.root / "data" / "1.csv").write_text(
        "event_time,id,value\n2024-01-01 00:00:00,1,987654321\n"
    )
    assert odfbuild("apply", "-y").code == 1
    spans = on.spans
    root = spans["dataset root"]
    assert root.status.code == root.status.STATUS_CODE_ERROR
    assert attributes(root)["error.type"] == "E0540"
    assert attributes(root)["odfbuild.violated_checks"].values[0].string_value == (
        "acceptedValues: value"
    )
    assert attributes(spans["dataset derived"])["odfbuild.status"] == "skipped"
    assert spans["odfbuild apply"].status.code == root.status.STATUS_CODE_ERROR
    assert b"987654321" not in on.raw
    assert on.resource["service.name"] == "nightly"
    assert on.numbers("odfbuild.datasets", "odfbuild.status") == {"failed": 1, "skipped": 1}


def test_secrets_do_not_leave_with_a_trace(
    tiny: Tiny, odfbuild: Program, on: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")
    file = tiny.root / "datasets" / "root.yaml"
    local = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName"
    url = "kind: Url\n        url: http://127.0.0.1:9/${{ env.TOKEN }}"
    assert local in file.read_text()
    file.write_text(file.read_text().replace(local, url))
    assert odfbuild("apply", "-y").code == 1
    assert on.spans["dataset root"].status.message
    assert b"hunter2" not in on.raw


@pytest.mark.parametrize(
    ("name", "value", "traces", "metrics"),
    [
        ("OTEL_SDK_DISABLED", "true", False, False),
        ("OTEL_METRICS_EXPORTER", "none", True, False),
        ("OTEL_TRACES_EXPORTER", "none", False, True),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", False, False),
    ],
)
def test_the_standard_variables_turn_it_off(
    odfbuild: Program,
    on: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: str,
    traces: bool,
    metrics: bool,
) -> None:
    monkeypatch.setenv(name, value)
    odfbuild.apply()
    assert (bool(on.traces), bool(on.metrics)) == (traces, metrics)
    assert ("speaks http/protobuf only" in caplog.text) == (value == "grpc")


def test_a_receiver_that_is_away_stops_nothing(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    odfbuild.apply()


def test_nothing_is_imported_when_it_is_off(tmp_path: Path) -> None:
    tiny = Tiny.fresh(tmp_path / "p")
    script = (
        "import sys\nfrom odfbuild.apply.telemetry import telemetry\n"
        "with telemetry({}) as sinks: assert sinks == ()\n"
        "assert not [each for each in sys.modules if each.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tiny.root, check=True)


def test_without_the_extra_the_run_goes_on_and_says_what_is_missing(
    odfbuild: Program,
    on: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for each in [each for each in sys.modules if each.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, each, None)
    odfbuild.apply()
    assert "pip install 'odfbuild[otel]'" in caplog.text
    assert on.raw == b""
