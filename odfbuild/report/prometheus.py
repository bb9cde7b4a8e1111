"""Ages and last runs of datasets in the text format of Prometheus, for `node_exporter`. Pure.

Source: Prometheus, "Exposition formats", text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from odfbuild.inspect.ages import DatasetAge
from odfbuild.odf.timestamp import Timestamp
from odfbuild.survey.outcome import Status
from odfbuild.survey.runs import PastRun

_HELP = {
    "odfbuild_dataset_age_seconds": "Time since the watermark of the dataset.",
    "odfbuild_dataset_max_age_seconds": "How old the dataset may be by `freshness`.",
    "odfbuild_dataset_stale": "1 if the dataset is older than that, or damaged.",
    "odfbuild_dataset_damaged": "1 if the chain of the dataset is damaged.",
    "odfbuild_dataset_records": "Records in the history of the dataset.",
    "odfbuild_dataset_late_files": "Files of its source that came too late to be read.",
    "odfbuild_dataset_failed": "1 if the dataset failed in the last run that touched it.",
    "odfbuild_dataset_last_success_timestamp_seconds": (
        "End of the last run in which the dataset was committed or had nothing new."
    ),
    "odfbuild_run_last_timestamp_seconds": "End of the last run that had something to do.",
    "odfbuild_run_last_exit_code": "Exit code of the last run that had something to do.",
}
_WELL = (Status.COMMITTED.value, Status.NOOP.value)
_NO_FAILURE = (*_WELL, Status.SKIPPED.value, Status.INTERRUPTED.value)


def prometheus_text(
    project: str,
    ages: Sequence[DatasetAge],
    records: Mapping[str, int],
    runs: Iterable[PastRun],
) -> str:
    """A line for each number; `records` by dataset, `runs` oldest first."""
    found: dict[str, list[str]] = {name: [] for name in _HELP}

    def add(name: str, value: float | None, dataset: str | None = None) -> None:
        if value is not None:
            labels = {"project": project, **({"dataset": dataset} if dataset else {})}
            told = ",".join(f'{key}="{_escaped(each)}"' for key, each in labels.items())
            found[name].append(f"{name}{{{told}}} {float(value)!r}")

    for each in ages:
        if each.age is not None:
            add("odfbuild_dataset_age_seconds", each.age.total_seconds(), each.name)
        if each.limit is not None:
            add("odfbuild_dataset_max_age_seconds", each.limit.total_seconds(), each.name)
        if each.status != "-":
            add("odfbuild_dataset_stale", each.status in ("stale", "damaged"), each.name)
        add("odfbuild_dataset_damaged", each.error is not None, each.name)
        add("odfbuild_dataset_records", records.get(each.name), each.name)
        add("odfbuild_dataset_late_files", each.late_files, each.name)
    shown = {each.name for each in ages}
    succeeded: dict[str, float] = {}
    failed: dict[str, bool] = {}
    last = None
    for last in runs:
        ended = _seconds(last.finished)
        for name, result in last.datasets.items():
            if name in shown:
                failed[name] = result["status"] not in _NO_FAILURE
                if result["status"] in _WELL:
                    succeeded[name] = ended
    for name in sorted(failed):
        add("odfbuild_dataset_failed", failed[name], name)
        add("odfbuild_dataset_last_success_timestamp_seconds", succeeded.get(name), name)
    if last is not None:
        add("odfbuild_run_last_timestamp_seconds", _seconds(last.finished))
        add("odfbuild_run_last_exit_code", last.exit_code)
    return "".join(
        f"# HELP {name} {_HELP[name]}\n# TYPE {name} gauge\n" + "".join(f"{e}\n" for e in lines)
        for name, lines in found.items()
        if lines
    )


def _seconds(time: str) -> float:
    return Timestamp.parse(time).millis / 1000


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
