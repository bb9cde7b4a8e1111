"""Answers about a project as messages of the Language Server Protocol, and the other way round.

Needs the extra `editor`. Source: Language Server Protocol 3.17.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from odfbuild.api.editor.completions import Item, Kind
from odfbuild.api.editor.diagnostics import Diagnostic, path_of
from odfbuild.api.editor.lenses import Lens
from odfbuild.api.editor.positions import Encoding, Position, Range, Text
from odfbuild.api.editor.renaming import Edit
from odfbuild.api.editor.session import Session
from odfbuild.api.editor.subjects import Opened, Span
from odfbuild.api.editor.symbols import Symbol
from odfbuild.api.editor.tokens import Token, TokenType

TOKEN_TYPES = [each.value for each in TokenType]

_KINDS = {
    Kind.key: lsp.CompletionItemKind.Property,
    Kind.value: lsp.CompletionItemKind.EnumMember,
    Kind.dataset: lsp.CompletionItemKind.Class,
    Kind.column: lsp.CompletionItemKind.Field,
    Kind.function: lsp.CompletionItemKind.Function,
    Kind.keyword: lsp.CompletionItemKind.Keyword,
    Kind.variable: lsp.CompletionItemKind.Variable,
}


def uri_of(path: str) -> str:
    """The address of a file."""
    return from_fs_path(path) or path


def path_from(uri: str) -> str | None:
    """The path of a file, without links in its folder; `None`: it is no file."""
    import os

    path = to_fs_path(uri)
    if not path or not uri.startswith("file:"):
        return None
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def position(place: lsp.Position) -> Position:
    """A place of a message."""
    return Position(place.line, place.character)


def range_of(found: Range) -> lsp.Range:
    """A range for a message."""
    return lsp.Range(
        lsp.Position(found.start.line, found.start.unit),
        lsp.Position(found.end.line, found.end.unit),
    )


class Texts:
    """Texts of files of a project, for places in them."""

    def __init__(self, session: Session, encoding: Encoding) -> None:
        self._session = session
        self._encoding = encoding
        self._found: dict[str, Text] = {}

    def of(self, file: str) -> Text:
        """The text of a file by its path below the root; empty where it cannot be read."""
        if file not in self._found:
            from odfbuild.api.editor.diagnostics import texts_of

            (text,) = texts_of([file], self._session.root, self._session.opened).values()
            self._found[file] = Text.of(text, self._encoding)
        return self._found[file]

    def location(self, span: Span) -> lsp.Location:
        """A place in any file."""
        path = path_of(self._session.root, span.file)
        return lsp.Location(uri_of(path), range_of(self.of(span.file).range(span.start, span.end)))

    def workspace_edit(self, edits: Iterable[Edit]) -> lsp.WorkspaceEdit:
        """Edits of any files."""
        changes: dict[str, list[lsp.TextEdit]] = {}
        for each in edits:
            place = self.location(each.span)
            changes.setdefault(place.uri, []).append(lsp.TextEdit(place.range, each.text))
        return lsp.WorkspaceEdit(changes=changes)


def diagnostic(found: Diagnostic) -> lsp.Diagnostic:
    """A finding."""
    return lsp.Diagnostic(
        range=range_of(found.range),
        message=found.message,
        severity=lsp.DiagnosticSeverity.Warning if found.warns else lsp.DiagnosticSeverity.Error,
        code=found.code,
        source="odfbuild",
        data={"fix": found.fix} if found.fix else None,
    )


def quick_fix(uri: str, found: lsp.Diagnostic) -> lsp.CodeAction | None:
    """The edit that writes the word that was meant; `None`: no word is known."""
    data = found.data
    fix = data.get("fix") if isinstance(data, Mapping) else None
    if not fix:
        return None
    return lsp.CodeAction(
        title=f"Write '{fix}'",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[found],
        is_preferred=True,
        edit=lsp.WorkspaceEdit(changes={uri: [lsp.TextEdit(found.range, fix)]}),
    )


def completion_item(item: Item, text: Text, number: int, uri: str) -> lsp.CompletionItem:
    """Something that may be written in the file at `uri`."""
    return lsp.CompletionItem(
        label=item.label,
        kind=_KINDS[item.kind],
        detail=item.detail or None,
        documentation=_markdown(item.about) if item.about else None,
        sort_text=f"{item.rank}{number:05}",
        text_edit=lsp.TextEdit(range_of(text.range(item.span.start, item.span.end)), item.insert),
        filter_text=item.label,
        data={"label": item.label, "kind": item.kind.value, "uri": uri},
    )


def hover(text: str, place: Range) -> lsp.Hover:
    """What is shown under the pointer."""
    return lsp.Hover(_markdown(text), range_of(place))


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)


def lens(found: Lens, root: str, text: Text) -> lsp.CodeLens:
    """A line above a definition."""
    return lsp.CodeLens(
        range=range_of(text.range(*found.at)),
        command=lsp.Command(found.title, found.command, arguments=[root, *found.datasets]),
    )


def symbol(found: Symbol, text: Text) -> lsp.DocumentSymbol:
    """A part of the outline of a file."""
    return lsp.DocumentSymbol(
        name=found.name or "-",
        kind=lsp.SymbolKind.Class if found.inner else lsp.SymbolKind.Property,
        range=range_of(text.range(found.start, found.end)),
        selection_range=range_of(text.range(*found.at)),
        detail=found.detail or None,
        children=[symbol(each, text) for each in found.inner],
    )


def token_data(tokens: Sequence[Token], opened: Opened, encoding: Encoding) -> list[int]:
    """Tokens as numbers: lines and units since the one before, length, type, no modifiers."""
    text = Text(opened.text, encoding)
    numbers = {each: number for number, each in enumerate(TokenType)}
    data: list[int] = []
    line = unit = 0
    for each in tokens:
        start = text.position(each.start)
        length = encoding.units(opened.text[each.start : each.end])
        new_line = start.line != line
        data += [
            start.line - line,
            start.unit if new_line else start.unit - unit,
            length,
            numbers[each.type],
            0,
        ]
        line, unit = start.line, start.unit
    return data
