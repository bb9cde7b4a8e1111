"""Methods that create and format definitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from odfbuild.api.base import Base
from odfbuild.errors import together

if TYPE_CHECKING:
    from odfbuild.api.authoring.new import NewFile
    from odfbuild.project.format import Formatted


class Authoring(Base):
    """What people write, begun and kept in form."""

    def new(
        self,
        kind: str,
        name: str,
        sources: Sequence[str] = (),
        *,
        merge: Literal["append", "ledger", "snapshot"] | None = None,
        key: Sequence[str] = (),
        read: str | None = None,
        sample: str | Path | None = None,
        over: str | None = None,
        sql_file: bool = False,
        description: str | None = None,
        write: bool = True,
    ) -> NewFile:
        """Begin a dataset, with columns and key as its data or inputs have them.

        `sources` are its files, its address, or the datasets that it reads, as `kind` has it;
        `read` names a format, `sample` a local file that looks like the data, `over` a column and
        its values (`country=NO,PT`). With `sql_file` the query is in a file of its own. Without
        `write` nothing is written. `ProjectError` E0140 to E0143 for what cannot be begun.
        """
        from odfbuild.api.authoring.new import begin
        from odfbuild.api.authoring.new import write as write_file
        from odfbuild.api.authoring.new_request import NewDatasetRequest
        from odfbuild.survey.definitions import read_definitions

        found = read_definitions(self._folder, self._given)
        wanted = NewDatasetRequest(
            kind=kind,
            name=name,
            sources=tuple(sources),
            merge=merge,
            key=tuple(key),
            read=read,
            sample=Path(sample) if sample is not None else None,
            over=over,
            sql_file=sql_file,
            description=description,
        )
        begun = begin(wanted, found)
        if write:
            write_file(begun, found.project.config)
        return begun

    def fmt(self, *paths: str | Path, write: bool = True) -> tuple[Formatted, ...]:
        """Bring definitions (default: all) into canonical form; returns every file that was read.

        Templates are left as they are. Without `write` nothing is written. Raises the error of a
        file that is no YAML, or `Errors`, after the others have been formatted.
        """
        from odfbuild.api.authoring.formatting import format_files

        config = self.config()
        found = format_files(
            map(Path, paths) if paths else [config.datasets],
            write=write,
            check_link=config.boundary.check_open,
        )
        if found.errors:
            raise together(found.errors)
        return found.files
