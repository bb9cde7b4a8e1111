"""A terminal of a given width, as far as the program uses one: what a person sees in the end."""

from __future__ import annotations

import re

_BEGUN = re.compile(r"\x1b(\[[\d;?]*)?\Z")
_TOKEN = re.compile(r"\x1b\[([\d;?]*)([a-zA-Z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Screen:
    """Rows of text; `broken` are those that the terminal went on with in the next row."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows = [""]
        self._row, self._column = 0, 0
        self._begun = ""
        self.broken: list[str] = []

    def feed(self, text: str) -> Screen:
        """Write what a program sends, colours left out; a control sequence may go on later."""
        text = self._begun + text
        self._begun = (_BEGUN.findall(text) and text[text.rindex("\x1b") :]) or ""
        text = text.removesuffix(self._begun)
        for parameter, control, back, down, plain in _TOKEN.findall(text):
            if control == "A":
                self._row = max(0, self._row - int(parameter or 1))
            elif control == "K":
                self._rows[self._row] = ""
            elif back:
                self._column = 0
            elif down:
                self._down()
            else:
                self._write(plain)
        return self

    @property
    def text(self) -> str:
        """What is on the screen, without spaces at ends of lines."""
        return "\n".join(row.rstrip() for row in self._rows).rstrip() + "\n"

    def _write(self, plain: str) -> None:
        for sign in plain:
            if self._column == self._columns:
                self.broken.append(self._rows[self._row])
                self._column = 0
                self._down()
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + sign + row[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
