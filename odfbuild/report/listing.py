"""What verbs print besides plans and errors, each as text and as plain values for JSON."""

from odfbuild.report.chain import log_to_data, render_log
from odfbuild.report.datasets import datasets_to_data, render_datasets, statuses
from odfbuild.report.findings import findings_to_data, render_findings
from odfbuild.report.outcome import outcome_to_data, render_dataset_outcome, render_outcome
from odfbuild.report.records import render_records

__all__ = [
    "datasets_to_data",
    "findings_to_data",
    "log_to_data",
    "outcome_to_data",
    "render_dataset_outcome",
    "render_datasets",
    "render_findings",
    "render_log",
    "render_outcome",
    "render_records",
    "statuses",
]
