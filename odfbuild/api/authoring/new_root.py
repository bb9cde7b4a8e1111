"""Properties of a new root: address, format, columns and merge strategy."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from odfbuild.api.authoring.new_request import NewDatasetRequest, check_column, missing
from odfbuild.api.authoring.scaffold import Root
from odfbuild.errors import OdfbuildError, ProjectError
from odfbuild.ingest.fetch.api_address import api_wanted
from odfbuild.ingest.fetch.files_glob import matching_files
from odfbuild.ingest.fetch.sftp_address import is_sftp
from odfbuild.ingest.guess import InferredFormat
from odfbuild.ingest.sample import FORMATS, Form, form_of, look_at
from odfbuild.odf.model import FetchStep, FetchStepFilesGlob, FetchStepUrl
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.model import Config
from odfbuild.wording import did_you_mean

_DAY = r"\d{4}-\d{2}-\d{2}"
_ADDRESSES = ("http:", "https:", "ftp:", "ftps:", "file:", "s3:", "gs:", "az:")
_NUMBERED = re.compile(r"[0-9]+(?:[-_.T]?[0-9]+)*")
_SUFFIX = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]*)+$")


def root_wanted(wanted: NewDatasetRequest, config: Config) -> Root:
    """The root that is wanted, with what its data looks like; raises what is missing."""
    if wanted.kind == "push":
        return _completed(wanted, source="", form=_form(wanted, ""), files=())
    if not wanted.sources:
        what = "files" if wanted.kind == "files" else "the address"
        raise missing(
            f"a root of kind '{wanted.kind}' needs to know {what}",
            f"odfbuild new {wanted.kind} {wanted.name} "
            + {
                "files": "'data/orders/*.csv'",
                "s3": "s3://bucket/orders.csv",
                "http": "https://api.example.org/orders",
                "sftp": "'sftp://reader@files.example.org/orders/*.csv'",
            }.get(wanted.kind, "https://example.org/orders.csv"),
        )
    if wanted.kind == "files":
        return _from_files(wanted, config)
    if wanted.kind == "http":
        return _from_api(wanted, config)
    return _from_server(wanted, config) if wanted.kind == "sftp" else _from_address(wanted, config)


def _from_address(wanted: NewDatasetRequest, config: Config) -> Root:
    address = wanted.sources[0]
    schemes = ("s3:",) if wanted.kind == "s3" else _ADDRESSES
    if len(wanted.sources) > 1 or not address.lower().startswith(schemes):
        raise ProjectError(
            f"'{' '.join(wanted.sources)}' is not an address that a root of kind "
            f"'{wanted.kind}' can read",
            code="E0143",
            help=f"one that begins with {', '.join(schemes)}; files are of kind 'files'",
        )
    name = re.split(r"[?#]", address)[0].rpartition("/")[2]
    local: tuple[Path, ...] = ()
    if address.startswith("file:") and not address.startswith("file://"):
        path = config.root / address.removeprefix("file:")
        local = (path,) if path.is_file() else ()
    return _completed(wanted, source=address, form=_form(wanted, name), files=local)


def _from_files(wanted: NewDatasetRequest, config: Config) -> Root:
    pattern, files = _pattern(wanted.sources, config.root)
    if not files:
        raise ProjectError(
            f"no file matches '{' '.join(wanted.sources)}'",
            code="E0143",
            notes=(f"relative names start at {config.root}",),
            help="put a first file there: odfbuild reads it to propose columns",
        )
    form = _form(wanted, files[0].name)
    if len(files) == 1 and pattern == _shown(files[0], config.root):
        # A pattern without a wildcard would match one file once, and never again.
        source = f"file:{pattern}"
        return _completed(wanted, source=source, form=form, files=files, kind="url")
    dated = all(re.search(_DAY, file.name) for file in files)
    return _completed(
        wanted, source=pattern, form=form, files=files, name_pattern=f"({_DAY})" if dated else None
    )


def _from_server(wanted: NewDatasetRequest, config: Config) -> Root:
    """A root of what an SFTP server has: its first file is fetched, to look at it."""
    address = wanted.sources[0]
    if len(wanted.sources) > 1 or not is_sftp(address):
        raise missing(
            f"'{' '.join(wanted.sources)}' is not one address of an SFTP server",
            f"odfbuild new sftp {wanted.name} 'sftp://reader@files.example.org/orders/*.csv'",
        )
    form = _form(wanted, address.rpartition("/")[2])
    is_pattern = re.search(r"[*?\[]", address.rpartition("@")[2]) is not None
    step = FetchStepFilesGlob(path=address) if is_pattern else FetchStepUrl(url=address)
    with first_fetched(step, config) as (file, name):
        return _completed(
            wanted,
            source=address,
            form=form,
            files=(file,),
            kind="files" if is_pattern else "sftp",
            called=name.rpartition("/")[2],
        )


def _from_api(wanted: NewDatasetRequest, config: Config) -> Root:
    """A root of what an API gives: its first page is fetched, to look at it."""
    address = wanted.sources[0]
    if len(wanted.sources) > 1 or not address.lower().startswith(("http://", "https://")):
        raise missing(
            f"'{' '.join(wanted.sources)}' is not one address of an API",
            f"odfbuild new http {wanted.name} 'https://api.example.org/orders?limit=100'",
        )
    from odfbuild.ingest.fetch.api_look import look_at_api

    looked = look_at_api(FetchStepUrl(url=address), config.ingest)
    if wanted.merge is None and api_wanted(looked.address, looked.address).cursor:
        wanted = replace(wanted, merge="ledger")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.ndjson"
        file.write_bytes(b"".join(each + b"\n" for each in looked.records))
        return _completed(
            wanted,
            source=looked.address,
            form=Form("NdJson"),
            files=(file,),
            kind="http",
            called="the first page",
        )


def _pattern(sources: Sequence[str], root: Path) -> tuple[str, tuple[Path, ...]]:
    """A pattern for what was named, relative to the root, and the files that match it now."""
    if len(sources) == 1 and re.search(r"[*?\[]", sources[0]):
        pattern = os.path.relpath(sources[0], root)
        pattern = sources[0] if pattern.startswith("..") else pattern
        return pattern, tuple(sorted(map(Path, matching_files(pattern, str(root)))))
    named = sorted(
        file
        for source in map(Path, sources)
        for file in (source.iterdir() if source.is_dir() else [source])
        if file.is_file() and not file.name.startswith(".")
    )
    if not named:
        return "", ()
    found = _SUFFIX.search(named[0].name)
    suffix = found.group() if found else ""
    folder = Path(os.path.commonpath([file.parent.absolute() for file in named]))
    if len(named) == 1 and not Path(sources[0]).is_dir():
        name = _NUMBERED.sub("*", named[0].name.removesuffix(suffix), count=1)
        return _shown(folder / f"{name}{suffix}", root), tuple(named)
    deeper = "" if all(file.parent.absolute() == folder for file in named) else "**/"
    return f"{_shown(folder, root)}/{deeper}*{suffix}", tuple(named)


def _shown(path: Path, root: Path) -> str:
    """A path as a definition names it: from the root of the project when it is in there."""
    relative = os.path.relpath(path.absolute(), root)
    return str(path.absolute()) if relative.startswith("..") else relative


def _form(wanted: NewDatasetRequest, name: str) -> Form:
    sample = wanted.sample.name if wanted.sample else ""
    form = form_of(name, wanted.read) or form_of(sample) if name or sample else None
    if form is not None:
        return form
    if wanted.read is not None:
        known = form_of("", wanted.read)
        if known is not None:
            return known
        raise ProjectError(
            f"no data is read as '{wanted.read}'",
            code="E0143",
            help=did_you_mean(wanted.read, FORMATS, f"one of {', '.join(FORMATS)}"),
        )
    if wanted.kind == "push":
        return Form("NdJson")
    raise missing(
        f"the name '{name}' does not show its data format",
        f"specify it with --read, one of {', '.join(FORMATS)}",
    )


def _completed(
    wanted: NewDatasetRequest,
    *,
    source: str,
    form: Form,
    files: Sequence[Path],
    kind: str | None = None,
    name_pattern: str | None = None,
    called: str | None = None,
) -> Root:
    """The root with all that is known by now, once it is clear how its data is merged."""
    kind = kind or wanted.kind
    looked = [wanted.sample] if wanted.sample else list(files)
    # A file that was fetched has a name of ours.
    as_named = None if called else form_of(looked[0].name, wanted.read) if looked else None
    sample = look_at(looked, as_named or form) if looked else None
    columns = [column.name for column in sample.guess.columns] if sample else []
    for name in wanted.key if columns else ():
        check_column(name, columns, "--key")
    found = sample.guess if sample else InferredFormat((), 0)
    proposed = wanted.key or found.key or found.state_key
    # Files bring what is new, unless each has all there is; an address gives all there is, and
    # again when it changes.
    is_state = kind in ("url", "s3", "sftp", "http") or (found.state_key and not wanted.key)
    usual = "snapshot" if is_state else "ledger" if proposed else "append"
    merge = wanted.merge or usual
    if merge != "append" and not proposed:
        raise missing(
            f"'{merge}' needs key columns",
            "name them with --key, let odfbuild propose them from --sample FILE, "
            "or keep all records with --merge append",
        )
    first = called or _sample_name(looked)
    return Root(
        kind=kind,
        name=wanted.name,
        source=source,
        read=form.kind,
        packed=form.packed,
        convert=form.convert,
        merge=merge,
        sample=sample,
        sampled=first,
        key=wanted.key,
        name_pattern=name_pattern,
        description=wanted.description,
    )


def _sample_name(files: Sequence[Path]) -> str:
    """How files that were looked at are called in a sentence."""
    if not files:
        return ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0].name}{more}"


# --- The first file of a source ---


@contextmanager
def first_fetched(step: FetchStep, config: Config) -> Iterator[tuple[Path, str]]:
    """The file, until the context ends, and what messages call it.

    Raises `OdfbuildError`, without a place, because there is no definition.
    """
    from odfbuild.ingest.fetch import FetchContext, fetch

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        context = FetchContext(
            project=config.name,
            dataset="new",
            root=config.root,
            scratch=scratch,
            cache=scratch / "cache",
            inbox=scratch / "inbox",
            now=Timestamp.now(),
            settings=config.ingest,
        )
        try:
            first = next(fetch(step, None, context), None)
            if first is None or first.file is None:
                raise AssertionError("a source without a state gives its data")
            yield first.file, first.display_name
        except OdfbuildError as error:
            raise error.changed(location=None) from None
