"""Which steps of a source this version carries out: the one place that says so. Pure."""

from __future__ import annotations

from odfbuild.odf.model import (
    FetchStepEthereumLogs,
    ReadStepCsv,
    ReadStepNdJson,
    ReadStepParquet,
    SetPollingSource,
)

_READ = (ReadStepCsv, ReadStepNdJson, ReadStepParquet)


def unsupported_steps(source: SetPollingSource) -> list[tuple[str, str]]:
    """Steps that cannot be carried out: path inside the event (`read`), and a sentence."""
    found = []
    if isinstance(source.fetch, FetchStepEthereumLogs):
        found.append(("fetch", _message("fetch", source.fetch.KIND)))
    if not isinstance(source.read, _READ):
        found.append(("read", _message("read", source.read.KIND)))
    return found


def _message(role: str, kind: str) -> str:
    return f"the {role} step '{kind}' is not supported by this version of odfbuild"
