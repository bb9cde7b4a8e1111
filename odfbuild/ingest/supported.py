"""Which steps of a source this version carries out: the one place that says so.

Pure: used when a project is checked as well as when a step is met at run time.
"""

from __future__ import annotations

from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    FetchStepFilesGlob,
    FetchStepUrl,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    PrepStepDecompress,
    ReadStepCsv,
    ReadStepNdJson,
    ReadStepParquet,
    SetPollingSource,
)

_SUPPORTED: dict[str, tuple[type, ...]] = {
    "fetch": (FetchStepFilesGlob, FetchStepUrl),
    "prepare": (PrepStepDecompress,),
    "read": (ReadStepCsv, ReadStepNdJson, ReadStepParquet),
    "merge": (
        MergeStrategyAppend,
        MergeStrategyChangelogStream,
        MergeStrategyLedger,
        MergeStrategySnapshot,
        MergeStrategyUpsertStream,
    ),
}


def unsupported_steps(source: SetPollingSource) -> list[tuple[str, str]]:
    """Steps that cannot be carried out: path inside the event (`prepare[1]`), and a sentence."""
    steps: list[tuple[str, str, object]] = [("fetch", "fetch", source.fetch)]
    steps += [(f"prepare[{i}]", "prepare", step) for i, step in enumerate(source.prepare or ())]
    steps += [("read", "read", source.read), ("merge", "merge", source.merge)]
    return [
        (path, _message(role, type(step).KIND))  # type: ignore[attr-defined]
        for path, role, step in steps
        if not isinstance(step, _SUPPORTED[role])
    ]


def unsupported(role: str, kind: str) -> IngestError:
    """The same finding as an error; `role` is `fetch`, `prepare`, `read` or `merge`."""
    return IngestError(_message(role, kind), code="E0410", help=_ways_out(role))


def _message(role: str, kind: str) -> str:
    return f"the {role} step '{kind}' is not supported by this version of odfbuild"


def _ways_out(role: str) -> str:
    kinds: list[str] = [kind.KIND for kind in _SUPPORTED[role]]  # type: ignore[attr-defined]
    return f"use one of: {', '.join(kinds)}"
