"""The language server: takes messages of an editor, asks, and answers. Needs the extra `editor`.

Edits are looked at after a short rest: first the file, by which nothing else waits, and everything
after a longer one, in a thread. A newer edit ends what an older one began.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from odfbuild.api.editor import protocol
from odfbuild.api.editor.completions import Kind, completions, documented
from odfbuild.api.editor.diagnostics import diagnostics, path_of
from odfbuild.api.editor.explanations import explain
from odfbuild.api.editor.lenses import EXPLAIN, PLAN, TEST, lenses_of
from odfbuild.api.editor.places import column_references, definition, references
from odfbuild.api.editor.positions import Encoding, Text
from odfbuild.api.editor.renaming import check_renameable, renamed
from odfbuild.api.editor.session import Session
from odfbuild.api.editor.subjects import Dataset, NamedColumn, Subject, Variable, View
from odfbuild.api.editor.symbols import symbols_of
from odfbuild.api.editor.template_renaming import variable_uses
from odfbuild.api.editor.tokens import tokens_of
from odfbuild.errors import OdfbuildError
from odfbuild.project.config import find_root
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.source import YAML_SUFFIXES
from odfbuild.project.unsaved import reading_unsaved
from odfbuild.version import __version__

REST = 0.12
"""Seconds after an edit before its file is looked at."""
LONG_REST = 0.6
"""Seconds after that before everything is looked at."""

_FAILED = -32803
"""RequestFailed: a request that was understood and cannot be done."""
_log = logging.getLogger(__name__)


class Server(LanguageServer):
    """A language server for projects; `directory` is that of one, else files tell theirs."""

    def __init__(self, directory: Path | None = None, given: Overrides = NO_OVERRIDES) -> None:
        super().__init__("odfbuild", __version__)
        self.directory = directory
        self.given = given
        self.sessions: dict[Path, Session] = {}
        self._waiting: dict[Path, asyncio.Task[None]] = {}
        self._published: dict[Path, set[str]] = {}
        self._edits: dict[Path, int] = {}

    # --- Projects and files ---

    @property
    def encoding(self) -> Encoding:
        """How positions are counted, as was agreed on."""
        agreed = self.workspace.position_encoding
        return Encoding(getattr(agreed, "value", agreed) or "utf-16")

    def session_of(self, path: str) -> Session | None:
        """The project that a file belongs to; `None`: it belongs to none."""
        try:
            root = find_root(self.directory or Path(path).parent)
        except OdfbuildError:
            return None
        if not path.startswith(f"{root}/"):
            return None
        if root not in self.sessions:
            self.sessions[root] = Session(root, self.given)
        return self.sessions[root]

    def found(self, uri: str) -> tuple[Session, View] | None:
        """Project and file of an address; `None` where nothing can be told about it yet."""
        path = protocol.path_from(uri)
        session = self.session_of(path) if path is not None else None
        if session is None or path is None:
            return None
        view = session.view(path)
        return None if view is None else (session, view)

    def subject(self, uri: str, place: lsp.Position) -> tuple[Session, View, Subject | None] | None:
        """What stands at a place."""
        found = self.found(uri)
        if found is None:
            return None
        session, view = found
        index = Text(view.opened.text, self.encoding).index(protocol.position(place))
        with reading_unsaved(session.unsaved()):
            return session, view, view.subject_at(index)

    # --- Looking at edits ---

    def edited(self, uri: str, text: str | None = None) -> None:
        """A file has another text; it is looked at soon."""
        path = protocol.path_from(uri)
        session = self.session_of(path) if path is not None else None
        if session is None or path is None:
            return
        if text is not None:
            session.holds(path, text)
        self.look_soon(session, path)

    def look_soon(self, session: Session, path: str | None) -> None:
        """Look at a file and then at everything, unless there is another edit before."""
        waiting = self._waiting.get(session.root)
        if waiting is not None:
            waiting.cancel()
        self._edits[session.root] = self._edits.get(session.root, 0) + 1
        look = self._look(session, path, self._edits[session.root])
        self._waiting[session.root] = asyncio.get_running_loop().create_task(look)

    async def _look(self, session: Session, path: str | None, edit: int) -> None:
        await asyncio.sleep(REST if edit > 1 else 0)
        if session.found is not None and path is not None and self._quickly(session, path):
            await asyncio.sleep(LONG_REST)
        try:
            look = await asyncio.to_thread(session.check, lambda: self._edits[session.root] != edit)
        except Exception as error:  # a defect must not end the server
            self._tell(error)
            return
        if look is None or self._edits[session.root] != edit:
            return
        had_none = session.found is None
        session.take(look)
        self._publish(session, {*look.errors, *map(session.file_of, session.opened)})
        if had_none and session.found is not None:
            await self.plan_again(session)

    def _quickly(self, session: Session, path: str) -> bool:
        try:
            files = session.check_file(path)
        except Exception as error:  # as above
            self._tell(error)
            return True
        self._publish(session, files, partial=True)
        return bool(files)

    def _publish(self, session: Session, files: Iterable[str], *, partial: bool = False) -> None:
        """Send what is wrong in files, and that nothing is wrong any more in others."""
        texts = protocol.Texts(session, self.encoding)
        before = self._published.setdefault(session.root, set())
        files = {*files} if partial else {*files, *before}
        for file in sorted(files):
            errors, flaws = session.errors.get(file, []), session.flaws.get(file, [])
            found = diagnostics(errors, texts.of(file), flaws) if errors or flaws else []
            if found:
                before.add(file)
            else:
                before.discard(file)
            uri = protocol.uri_of(path_of(session.root, file))
            document = self.workspace.text_documents.get(uri)
            self.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(
                    uri=uri,
                    diagnostics=[protocol.diagnostic(each) for each in found],
                    version=document.version if document is not None else None,
                )
            )

    async def plan_again(self, session: Session) -> None:
        """Make the plan of what is saved, for the lines above definitions."""
        try:
            session.plan = await asyncio.to_thread(session.make_plan)
        except Exception as error:  # as above
            self._tell(error)
            return
        workspace = self.client_capabilities.workspace
        lens = workspace.code_lens if workspace is not None else None
        if lens is not None and lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _tell(self, error: Exception) -> None:
        _log.exception("a look at the project failed", exc_info=error)
        self.window_log_message(
            lsp.LogMessageParams(lsp.MessageType.Error, f"{type(error).__name__}: {error}")
        )


def make_server(directory: Path | None = None, given: Overrides = NO_OVERRIDES) -> Server:
    """A server with all that it answers."""
    server = Server(directory, given)
    _files(server)
    _questions(server)
    _changes(server)
    _shown(server)
    return server


def _files(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.edited(params.text_document.uri, params.text_document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.edited(uri, server.workspace.get_text_document(uri).source)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        path = protocol.path_from(params.text_document.uri)
        session = server.session_of(path) if path is not None else None
        if session is not None and path is not None:
            session.closed(path)
            server.look_soon(session, None)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        path = protocol.path_from(params.text_document.uri)
        session = server.session_of(path) if path is not None else None
        if session is not None:
            server.look_soon(session, path)
            await server.plan_again(session)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        for each in params.changes:
            path = protocol.path_from(each.uri)
            session = server.session_of(path) if path is not None else None
            if session is not None and path not in session.opened:
                server.look_soon(session, None)


def _questions(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        found = server.subject(params.text_document.uri, params.position)
        if found is None:
            return None
        session, view, subject = found
        if subject is None:
            return None
        with reading_unsaved(session.unsaved()):
            text = explain(view, subject)
        place = Text(view.opened.text, server.encoding)
        span = subject.span
        return None if text is None else protocol.hover(text, place.range(span.start, span.end))

    options = lsp.CompletionOptions(trigger_characters=[".", ":", "-", " "], resolve_provider=True)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        uri = params.text_document.uri
        found = server.found(uri)
        if found is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        session, view = found
        text = Text(view.opened.text, server.encoding)
        index = text.index(protocol.position(params.position))
        with reading_unsaved(session.unsaved()):
            items, is_all = completions(view, index)
        return lsp.CompletionList(
            is_incomplete=not is_all,
            items=[protocol.completion_item(each, text, n, uri) for n, each in enumerate(items)],
        )

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)
    def resolve(item: lsp.CompletionItem) -> lsp.CompletionItem:
        data: Any = item.data
        found = server.found(data["uri"]) if data else None
        if item.documentation is None and found is not None:
            text = documented(found[1], data["label"], Kind(data["kind"]))
            if text:
                item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return item

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def define(params: lsp.DefinitionParams) -> lsp.Location | None:
        found = server.subject(params.text_document.uri, params.position)
        if found is None:
            return None
        session, view, subject = found
        if subject is None:
            return None
        with reading_unsaved(session.unsaved()):
            span = definition(view, subject)
        return None if span is None else protocol.Texts(session, server.encoding).location(span)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def refer(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        found = server.subject(params.text_document.uri, params.position)
        if found is None:
            return None
        session, view, subject = found
        declaration = params.context.include_declaration
        with reading_unsaved(session.unsaved()):
            if isinstance(subject, Dataset):
                spans = references(view, subject.name, declaration=declaration)
            elif isinstance(subject, NamedColumn) and subject.dataset is not None:
                name = subject.name
                spans = column_references(view, subject.dataset, name, declaration=declaration)
            elif isinstance(subject, Variable):
                with _refusals():
                    spans = variable_uses(view, subject.name)
            else:
                return None
        texts = protocol.Texts(session, server.encoding)
        return [texts.location(each) for each in spans]


def _changes(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        found = server.subject(params.text_document.uri, params.position)
        if found is None:
            return None
        _, view, subject = found
        with _refusals():
            check_renameable(view, subject)
        assert subject is not None, "checked"
        text = Text(view.opened.text, server.encoding)
        place = text.range(subject.span.start, subject.span.end)
        name = getattr(subject, "name", "")
        return lsp.PrepareRenamePlaceholder(protocol.range_of(place), name)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        found = server.subject(params.text_document.uri, params.position)
        if found is None:
            return None
        session, view, subject = found
        with _refusals(), reading_unsaved(session.unsaved()):
            edits = renamed(view, subject, params.new_name)
        return protocol.Texts(session, server.encoding).workspace_edit(edits)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        from odfbuild.project.format import format_text

        found = server.found(params.text_document.uri)
        if found is None or not found[1].opened.file.endswith(YAML_SUFFIXES):
            return []
        view = found[1]
        try:
            made = format_text(view.opened.text, view.opened.file)
        except OdfbuildError:
            return []  # what is wrong, a diagnostic says
        if not made.is_changed:
            return []
        whole = Text(made.before, server.encoding).range(0, len(made.before))
        return [lsp.TextEdit(protocol.range_of(whole), made.after)]

    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def fixes(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        made = (protocol.quick_fix(uri, each) for each in params.context.diagnostics)
        return [each for each in made if each is not None]


class _refusals:  # noqa: N801  # a context, called as a function
    """What is refused is the answer to a request, with code, reason and the way out."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OdfbuildError):
            place = f" ({error.location})" if error.location is not None else ""
            help_ = f"; {error.help}" if error.help else ""
            raise JsonRpcException(f"{error.code}: {error.message}{place}{help_}", _FAILED)


def _shown(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        found = server.found(params.text_document.uri)
        if found is None:
            return []
        text = Text(found[1].opened.text, server.encoding)
        return [protocol.symbol(each, text) for each in symbols_of(found[1].opened)]

    legend = lsp.SemanticTokensLegend(token_types=protocol.TOKEN_TYPES, token_modifiers=[])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        found = server.found(params.text_document.uri)
        if found is None:
            return lsp.SemanticTokens(data=[])
        opened = found[1].opened
        data = protocol.token_data(tokens_of(opened), opened, server.encoding)
        return lsp.SemanticTokens(data=data)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        found = server.found(params.text_document.uri)
        if found is None:
            return []
        session, view = found
        text = Text(view.opened.text, server.encoding)
        listed = lenses_of(view, session.plan)
        return [protocol.lens(each, str(session.root), text) for each in listed]

    @server.command(PLAN)
    async def plan(root: str, *datasets: str) -> str:
        return await _answer(server, "plan", root, datasets)

    @server.command(EXPLAIN)
    async def explained(root: str, *datasets: str) -> str:
        return await _answer(server, "explain", root, datasets)

    @server.command(TEST)
    async def tested(root: str, *datasets: str) -> str:
        return await _answer(server, "test", root, datasets)


async def _answer(server: Server, what: str, root: str, datasets: tuple[str, ...]) -> str:
    """The text that a command gives, which is also shown in the editor."""
    session = server.sessions.get(Path(root))
    if session is None or not datasets:
        raise JsonRpcException(f"no file of a project in {root} is open", _FAILED)
    with _refusals():
        match what:
            case "plan":
                text = await asyncio.to_thread(session.planned, datasets)
            case "test":
                text = await asyncio.to_thread(session.tested, datasets)
            case _:
                text = await asyncio.to_thread(session.explained, datasets[0])
    window = server.client_capabilities.window
    if window is not None and window.show_document is not None and window.show_document.support:
        file = await asyncio.to_thread(session.keep, f"{what}.txt", text)
        await server.window_show_document_async(
            lsp.ShowDocumentParams(uri=protocol.uri_of(str(file)), take_focus=True)
        )
    return text
