"""The language server on a large project: how long until it answers, and CPU for each keystroke.

    python benchmarks/editor.py --sizes 1000 10000

A client opens a definition of a project of so many datasets (`generate.py`), whose cache `validate`
has filled, and types a name into its query, one character at a time; it asks for completion after
each. CPU is that of the server and its children, from /proc, so this runs on Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

HERE = Path(__file__).parent
PROGRAM = Path(sys.executable).with_name("odfbuild")
TYPED = "region_of_the_order"
SECONDS = 1.0
"""Within which the first diagnostics are to come, with a filled cache."""
KEYSTROKE = 0.05
"""Seconds of CPU that a keystroke may take."""


class Client:
    """An editor that measures."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.news = asyncio.Event()
        self.found: dict[tuple[str, int | None], int] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def found(params: lsp.PublishDiagnosticsParams) -> None:
            self.found[params.uri, params.version] = len(params.diagnostics)
            self.news.set()

    async def until(self, uri: str, version: int) -> None:
        while (uri, version) not in self.found:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 300)

    def cpu(self) -> float:
        """Seconds of CPU of the server so far."""
        process = self.client._server.pid  # type: ignore[union-attr]
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def measure(root: Path) -> list[tuple[str, float, float | None]]:
    """Names and figures: seconds, and what they should be below."""
    file = min((root / "datasets").rglob("layer10-*.yaml"))
    text = file.read_text()
    uri = file.as_uri()
    rows: list[tuple[str, float, float | None]] = []
    each = Client()
    start = time.monotonic()
    await each.client.start_io(str(PROGRAM), "lsp")
    await each.client.initialize_async(
        lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=root.as_uri())
    )
    each.client.initialized(lsp.InitializedParams())
    rows.append(("start of the server", time.monotonic() - start, None))
    begin, cpu = time.monotonic(), each.cpu()
    item = lsp.TextDocumentItem(uri, "yaml", 1, text)
    each.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    await each.until(uri, 1)
    rows.append(
        ("first diagnostics of all files, after opening one", time.monotonic() - begin, SECONDS)
    )
    rows.append(("first diagnostics, CPU", each.cpu() - cpu, None))
    await asyncio.sleep(6)  # the first plan is made for the lines above definitions
    at = text.index("SELECT") + len("SELECT ")
    version, waits, answers = 1, [], []
    start_cpu = each.cpu()
    line, column = text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1
    for number in range(1, len(TYPED) + 1):
        version += 1
        changed = f"{text[:at]}{TYPED[:number]}, {text[at:]}"
        document = lsp.VersionedTextDocumentIdentifier(version, uri)
        begin = time.monotonic()
        change = lsp.TextDocumentContentChangeWholeDocument(changed)
        params = lsp.DidChangeTextDocumentParams(document, [change])
        each.client.text_document_did_change(params)
        place = lsp.Position(line, column + number)
        await each.client.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), place)
        )
        answers.append(time.monotonic() - begin)
        await each.until(uri, version)
        waits.append(time.monotonic() - begin)
    spent = (each.cpu() - start_cpu) / len(TYPED)
    rows.append(("keystroke: CPU for diagnostics of the file and completion", spent, KEYSTROKE))
    rows.append(("keystroke: completion is there after", median(answers), None))
    rows.append(("keystroke: diagnostics are there after", median(waits), None))
    cpu = each.cpu()
    await asyncio.sleep(4)
    rows.append(("pause: CPU for diagnostics of all files", each.cpu() - cpu, None))
    await each.client.shutdown_async(None)
    each.client.exit(None)
    await each.client.stop()
    return rows


def main() -> int:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000])
    options = parser.parse_args()
    for size in options.sizes:
        root = Path(tempfile.mkdtemp(prefix="odfbuild-bench-")).resolve()
        try:
            generate = [sys.executable, str(HERE / "generate.py"), "--kind", "odf"]
            subprocess.run([*generate, "--n", str(size), "--out", str(root)], check=True)
            time.sleep(3)  # files that were changed just now are not kept in the cache
            for _ in range(2):
                subprocess.run([PROGRAM, "validate"], cwd=root, check=True, capture_output=True)
            print(f"\n{size:,} datasets")
            for name, seconds, target in asyncio.run(measure(root)):
                ratio = f"{seconds / target:6.2f} of {target * 1000:,.0f} ms" if target else ""
                print(f"  {name:<60} {seconds * 1000:>8,.0f} ms  {ratio}")
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
