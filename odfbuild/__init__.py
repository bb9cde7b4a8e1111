"""odfbuild: a declarative, GitOps-style build tool for data.

The names in `__all__` are the Python interface: documented, typed, and changed only where the
changelog says so. Everything else may change with any release.

>>> project = odfbuild.Project("example_project")
>>> plan = project.plan()
>>> outcome = project.apply(plan)
"""

from importlib import import_module
from typing import Any

_HOME = {
    "odfbuild.api": ("Project",),
    "odfbuild.api.dataset": ("Dataset",),
    "odfbuild.records.pin": ("Pin",),
    "odfbuild.plan.model": (
        *("Plan", "DatasetPlan", "Action", "Reason", "ReasonCode"),
        *("EventChange", "Pending", "ColumnEffect"),
    ),
    "odfbuild.plan.explain": ("Explanation",),
    "odfbuild.survey.outcome": ("ApplyOutcome", "DatasetOutcome", "Status", "TableOutcome"),
    "odfbuild.exchange.repositories.outcome": ("Transfer", "TransferStatus"),
    "odfbuild.inspect.verify.check": ("Verdict",),
    "odfbuild.inspect.verify.finding": ("Finding",),
    "odfbuild.plan.graph.dag": ("Graph",),
    "odfbuild.errors": (
        *("OdfbuildError", "Errors", "Location", "ProjectError", "GraphError", "PlanError"),
        *("IngestError", "QueryError", "CheckError", "ChainError", "StaleHeadError"),
        *("IntegrityError", "EnvironmentProblem", "EngineProblem", "RepositoryError"),
        *("BranchError", "RecordsError", "TableError", "EngineError", "PersonalDataError"),
    ),
    "odfbuild.version": ("__version__",),
}
"""Where public names are defined: each is imported when it is first asked for."""

_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from odfbuild.platforms import UNSUPPORTED, is_supported

        if not is_supported():
            raise ImportError(UNSUPPORTED)
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext odfbuild` in a notebook: the magic `%%sql`."""
    import_module("odfbuild.api.magics").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
