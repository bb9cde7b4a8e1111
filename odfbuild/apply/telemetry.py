"""Traces and metrics of a run for OpenTelemetry, made of the records of its log.

On if the standard variables name a receiver (`OTEL_EXPORTER_OTLP_ENDPOINT` and its like); without
them nothing is imported. A receiver that cannot be reached stops nothing: the library logs it.
Secrets are no part of it, nor are examples of records that violate checks.
Source: OpenTelemetry, "Environment Variable Specification".
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from odfbuild.apply.run_events import LogEvent, Record
from odfbuild.extras import missing_library
from odfbuild.ingest.secrets import scrub
from odfbuild.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from odfbuild.apply.run_log import Sink

_LOG = logging.getLogger(__name__)
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "http/protobuf"
_NUMBERS = ("blocks", "records", "records_read", "bad_records")


def _is_on(signal: str, environment: Mapping[str, str]) -> bool:
    """Whether `TRACES` or `METRICS` have a receiver, and nothing turns them off."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get(f"OTEL_{signal}_EXPORTER") or "otlp"
    endpoint = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or environment.get(
        _ENDPOINT
    )
    if not endpoint or "otlp" not in exporter.split(","):
        return False
    protocol = (
        environment.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL")
        or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or _PROTOCOL
    )
    if protocol != _PROTOCOL:
        _LOG.warning("no %s are sent: odfbuild speaks %s only", signal.lower(), _PROTOCOL)
    return protocol == _PROTOCOL


@contextmanager
def telemetry(environment: Mapping[str, str] = os.environ) -> Iterator[Sequence[Sink]]:
    """What takes the records of a run, if anything is to be sent; all is sent at the end."""
    signals = [each for each in ("TRACES", "METRICS") if _is_on(each, environment)]
    if not signals:
        yield ()
        return
    try:
        providers = _providers(signals, environment)
    except ModuleNotFoundError as error:
        missing = missing_library(error, f"{_ENDPOINT} is set: telemetry")
        if missing is None:
            raise
        _LOG.warning("%s; %s", missing.message, missing.help)
        yield ()
        return
    tracing, measuring = providers
    told = _Telemetry(tracing, measuring, environment)
    try:
        yield (told,)
    finally:
        told.close()
        for each in (tracing, measuring):
            if hasattr(each, "shutdown"):
                each.shutdown()


def _providers(
    signals: Sequence[str], environment: Mapping[str, str]
) -> tuple[TracerProvider, MeterProvider]:
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import NoOpTracerProvider

    named = "OTEL_SERVICE_NAME" in environment or "service.name" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create(
        {"service.version": __version__, **({} if named else {"service.name": "odfbuild"})}
    )
    tracing: TracerProvider = NoOpTracerProvider()
    measuring: MeterProvider = NoOpMeterProvider()
    if "TRACES" in signals:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider as Tracing
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracing = spans = Tracing(resource=resource, shutdown_on_exit=False)
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if "METRICS" in signals:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider as Measuring
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        measuring = Measuring([reader], resource=resource, shutdown_on_exit=False)
    return tracing, measuring


class _Telemetry:
    """A span for the run and one for each dataset and table, and numbers of them."""

    def __init__(
        self, tracing: TracerProvider, measuring: MeterProvider, environment: Mapping[str, str]
    ) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracing.get_tracer("odfbuild", __version__)
        meter = measuring.get_meter("odfbuild", __version__)
        self._records = meter.create_counter(
            "odfbuild.records", "{record}", "Records that were added to a dataset"
        )
        self._datasets = meter.create_counter(
            "odfbuild.datasets", "{dataset}", "Datasets that ended, by status"
        )
        self._seconds = meter.create_histogram(
            "odfbuild.dataset.duration", "s", "How long work on a dataset took"
        )
        self._runs = meter.create_histogram("odfbuild.run.duration", "s", "How long runs took")
        carrier = {
            key: environment[key.upper()]
            for key in ("traceparent", "tracestate")
            if key.upper() in environment
        }
        self._parent = TraceContextTextMapPropagator().extract(carrier) if carrier else None
        self._run: Span | None = None
        self._begun = time.monotonic()
        self._spans: dict[str, Span] = {}

    def __call__(self, record: Record) -> None:
        """Take a record of the log; called by one thread at a time."""
        event = record["event"]
        if event == LogEvent.PLAN_READY:
            self._run = self._tracer.start_span("odfbuild apply", self._parent)
            _set(self._run, record, "project", "env", "branch", "plan_digest", "run_id", "total")
            self._run.set_attribute("odfbuild.affected", len(record["affected"]))
        elif event == LogEvent.NODE_START:
            self._spans[record["dataset"]] = self._started(f"dataset {record['dataset']}", record)
        elif event == LogEvent.NODE_PROGRESS and "blocks" in record:
            span = self._spans.get(record["dataset"])
            if span is not None:
                numbers = {f"odfbuild.{key}": record[key] for key in ("blocks", "records")}
                span.add_event("commit", numbers)
        elif event == LogEvent.TABLE:
            span = self._started(f"table {record['table']}", record, record["seconds"])
            _set(span, record, "table", "partitions")
            _end(span, record)
        elif "status" in record:
            self._dataset_ended(record)
        elif event == LogEvent.SUMMARY:
            self._ended(record["exit_code"], record["msg"])

    def close(self) -> None:
        """End what did not end, because the run was broken off."""
        for span in (*self._spans.values(), self._run):
            if span is not None and span.is_recording():
                _end(span, {"level": "error", "msg": "broken off"})

    def _started(self, name: str, record: Record, ago: float = 0.0) -> Span:
        from opentelemetry.trace import set_span_in_context

        if self._run is None:
            raise AssertionError("a run begins with its plan")
        begun = time.time_ns() - int(ago * 1e9)
        span = self._tracer.start_span(name, set_span_in_context(self._run), start_time=begun)
        span.set_attribute("odfbuild.dataset", record["dataset"])
        return span

    def _dataset_ended(self, record: Record) -> None:
        name, status = record["dataset"], record["status"]
        self._datasets.add(1, {"odfbuild.dataset": name, "odfbuild.status": status})
        self._records.add(record["records"], {"odfbuild.dataset": name})
        span = self._spans.pop(name, None)
        if span is None:  # it could not begin
            span = self._started(f"dataset {name}", record)
        else:
            self._seconds.record(
                record["seconds"], {"odfbuild.dataset": name, "odfbuild.status": status}
            )
        _set(span, record, "head")
        broken = [
            each["check"] for each in record.get("check_results", ()) if each["status"] != "passed"
        ]
        if broken:
            span.set_attribute("odfbuild.violated_checks", broken)
        _end(span, record)

    def _ended(self, exit_code: int, message: str) -> None:
        self._runs.record(time.monotonic() - self._begun, {"odfbuild.exit_code": exit_code})
        if self._run is not None:
            self._run.set_attribute("odfbuild.exit_code", exit_code)
            level = "error" if exit_code else "info"
            _end(self._run, {"level": level, "msg": message})


def _set(span: Span, record: Record, *keys: str) -> None:
    for key in keys:
        if key in record:
            span.set_attribute(f"odfbuild.{key}", record[key])


def _end(span: Span, record: Mapping[str, Any]) -> None:
    """End a span as a record says."""
    from opentelemetry.trace import Status, StatusCode

    _set(span, dict(record), "status", *_NUMBERS)
    if "code" in record:
        span.set_attribute("error.type", record["code"])
    if record["level"] == "error":
        span.set_status(Status(StatusCode.ERROR, scrub(record["msg"])))
    span.end()
