"""Which steps of a source this version carries out: the one place that says so. Pure."""

from __future__ import annotations

from odfbuild.odf.model import FetchStepEthereumLogs, SetPollingSource


def unsupported_steps(source: SetPollingSource) -> list[tuple[str, str]]:
    """Steps that cannot be carried out: path inside the event (`fetch`), and a sentence."""
    if not isinstance(source.fetch, FetchStepEthereumLogs):
        return []
    kind = source.fetch.KIND
    return [("fetch", f"the fetch step '{kind}' is not supported by this version of odfbuild")]
