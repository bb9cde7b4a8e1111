"""An editor for tests: a client of the Language Server Protocol that starts the real program."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

PROGRAM = Path(sys.executable).with_name("odfbuild")
WAIT = 60
"""Seconds after which an answer is not expected any more, on a busy machine."""


class Editor:
    """One editor with one server, for a project in `root`."""

    def __init__(self, root: Path, encodings: tuple[str, ...] = ("utf-16",)) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.shown: list[str] = []
        self.log: list[str] = []
        self._found: dict[tuple[str, int | None], list[lsp.Diagnostic]] = {}
        self._last: dict[str, list[lsp.Diagnostic]] = {}
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = LanguageClient("tests", "1")
        self._listen()
        self.capabilities = self.wait(self._start(encodings)).capabilities

    async def _start(self, encodings: tuple[str, ...]) -> lsp.InitializeResult:
        await self._client.start_io(str(PROGRAM), "lsp")
        answer = await self._client.initialize_async(
            lsp.InitializeParams(
                capabilities=lsp.ClientCapabilities(
                    general=lsp.GeneralClientCapabilities(position_encodings=encodings),
                    window=lsp.WindowClientCapabilities(
                        show_document=lsp.ShowDocumentClientCapabilities(support=True)
                    ),
                ),
                root_uri=self.root.as_uri(),
            )
        )
        self._client.initialized(lsp.InitializedParams())
        return answer

    def _listen(self) -> None:
        @self._client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def found(params: lsp.PublishDiagnosticsParams) -> None:
            with self._news:
                self._found[params.uri, params.version] = list(params.diagnostics)
                self._last[params.uri] = list(params.diagnostics)
                self._news.notify_all()

        @self._client.feature(lsp.WINDOW_LOG_MESSAGE)
        def logged(params: lsp.LogMessageParams) -> None:
            self.log.append(params.message)

        @self._client.feature(lsp.WINDOW_SHOW_DOCUMENT)
        def show(params: lsp.ShowDocumentParams) -> lsp.ShowDocumentResult:
            self.shown.append(params.uri)
            return lsp.ShowDocumentResult(success=True)

    def wait(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """What a request is answered with."""
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result(WAIT)

    def tell(self, send: Callable[..., None], params: Any) -> None:
        """Send a notification."""

        async def sent() -> None:
            send(params)

        self.wait(sent())

    def uri(self, file: str) -> str:
        return (self.root / file).as_uri()

    def document(self, file: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri(file))

    def open(self, file: str, text: str | None = None) -> list[lsp.Diagnostic]:
        """Open a file, unless it is open; what is wrong in it."""
        if file in self.texts:
            return self.change(file, text) if text is not None else self.last(file)
        # As an editor does, line breaks stay as they are.
        saved = (self.root / file).read_bytes().decode() if text is None else text
        self.texts[file], self.versions[file] = saved, 1
        item = lsp.TextDocumentItem(self.uri(file), "yaml", 1, saved)
        self.tell(self._client.text_document_did_open, lsp.DidOpenTextDocumentParams(item))
        return self.diagnostics(file)

    def change(self, file: str, text: str) -> list[lsp.Diagnostic]:
        """Give a file another text without saving it; what is wrong in it then."""
        self.send(file, text)
        return self.diagnostics(file)

    def send(self, file: str, text: str) -> None:
        """The same without waiting."""
        self.texts[file] = text
        self.versions[file] += 1
        document = lsp.VersionedTextDocumentIdentifier(self.versions[file], self.uri(file))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        params = lsp.DidChangeTextDocumentParams(document, [change])
        self.tell(self._client.text_document_did_change, params)

    def diagnostics(self, file: str) -> list[lsp.Diagnostic]:
        """What is wrong in the present text of a file; waits for it."""
        key = self.uri(file), self.versions[file]
        with self._news:
            assert self._news.wait_for(lambda: key in self._found, WAIT), self.log
            return self._found[key]

    def last(self, file: str) -> list[lsp.Diagnostic]:
        return self._last.get(self.uri(file), [])

    def until(self, file: str, holds: Callable[[list[lsp.Diagnostic]], bool]) -> None:
        """Wait until what is wrong in a file is as it should be."""
        with self._news:
            assert self._news.wait_for(lambda: holds(self.last(file)), WAIT), self.last(file)

    def save(self, file: str) -> None:
        (self.root / file).write_bytes(self.texts[file].encode())
        params = lsp.DidSaveTextDocumentParams(self.document(file))
        self.tell(self._client.text_document_did_save, params)

    def close(self, file: str) -> None:
        del self.texts[file]
        params = lsp.DidCloseTextDocumentParams(self.document(file))
        self.tell(self._client.text_document_did_close, params)

    def ask(self, method: str, params: Any) -> Any:
        """The answer to a request, by the name of the method of the client."""
        return self.wait(getattr(self._client, f"{method}_async")(params))

    def at(self, file: str, words: str, within: int = 0) -> dict[str, Any]:
        """Document and position of a place in the first occurrence of some words."""
        return {
            "text_document": self.document(file),
            "position": place(self.texts[file], self.texts[file].index(words) + within),
        }

    def quit(self) -> None:
        self.ask("shutdown", None)

        async def end() -> None:
            self._client.exit(None)
            await self._client.stop()

        self.wait(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT)


def place(text: str, index: int) -> lsp.Position:
    """The position of an index, in code units of UTF-16."""
    start = text.rfind("\n", 0, index) + 1
    units = len(text[start:index].encode("utf-16-le")) // 2
    return lsp.Position(text.count("\n", 0, index), units)


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    """A text with edits of an editor."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def index(position: lsp.Position) -> int:
        return min(starts[min(position.line, len(lines))] + position.character, len(text))

    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character))[::-1]:
        text = text[: index(edit.range.start)] + edit.new_text + text[index(edit.range.end) :]
    return text
