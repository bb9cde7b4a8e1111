"""Any file of the protocol, told by what is in it: blocks, manifests, events, schemas.

Bytes are a block, a bare Arrow schema, an Arrow or a Parquet file; text is YAML or JSON with one
document or several. What comes out is canonical plain data. Writes nothing, needs no project.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import EARLY_CHAIN, Errors, Location, ProjectError
from odfbuild.odf import model
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.flatbuffers.form import (
    MalformedBlock,
    UnsupportedVersion,
    block_hash,
    decode_block,
    manifest_version,
)
from odfbuild.odf.model import DataSchema, MetadataEvent, SetDataSchema
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import odf_form
from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError, read_raw
from odfbuild.odf.yaml_form import (
    MANIFEST_VERSIONS,
    from_data,
    from_manifest,
    spellings,
    to_data,
    to_manifest,
)
from odfbuild.project.old_form import is_early_block
from odfbuild.project.problems import is_about_value, located, old_form_problem
from odfbuild.project.yaml.source import locate, locate_value, read_documents
from odfbuild.values import Value

if TYPE_CHECKING:
    pass

LARGEST = 64 * 1024 * 1024
"""Bytes up to which a file is read whole; only Parquet and Arrow files may be larger."""

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
_EVENTS = spellings(tuple(each.KIND for each in MetadataEvent.__args__))
_KNOWN = (
    "known are blocks, manifests (DatasetSnapshot, MetadataBlock), events, data schemas, "
    "Arrow schemas, Arrow and Parquet files"
)


class Decoded(Value, kw_only=True):
    """Something recognised: `data` is canonical, `facts` are lines about it for a person."""

    data: Any
    facts: tuple[str, ...] = field(default=())


def decode_file(path: Path) -> tuple[Decoded, ...]:
    """What is in a file.

    `ProjectError` E0130 when it is nothing that is known, E0131 and E0132 for a block that cannot
    be read, `Errors` with all that is wrong in a document.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(_ARROW))
            if not start.startswith((_PARQUET, _ARROW)):
                return decode_bytes(start + file.read(LARGEST + 1), name)
            file.seek(0)
            return (_arrow_file(file, start, name),)
    except OSError as error:
        raise ProjectError(
            f"{name} cannot be read: {error.strerror or error}",
            code="E0130",
            help="give a file, the hash of a block, or - for standard input",
        ) from None


def decode_bytes(data: bytes, name: str) -> tuple[Decoded, ...]:
    """What is in some bytes; `name` is used in messages. Errors as `decode_file`."""
    if data.startswith((_PARQUET, _ARROW)):
        return (_arrow_file(io.BytesIO(data), data, name),)
    if len(data) > LARGEST:
        raise _unknown(name, f"it has more than {LARGEST} bytes, and no block or manifest has")
    if b"\0" in data:
        return (_binary(data, name),)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise _unknown(name, f"it is not a known format, nor text in UTF-8 ({where})") from None
    documents = read_documents(text, name)
    if not documents:
        raise _unknown(name, "it is empty")
    return tuple(_document(each, text, name, index) for index, each in enumerate(documents))


# --- Bytes ---


def _binary(data: bytes, name: str) -> Decoded:
    try:
        block = decode_block(data)
    except UnsupportedVersion as error:
        raise ProjectError(
            f"{name}: {error}", code="E0132", help="a newer release of odfbuild may read it"
        ) from None
    except MalformedBlock as problem:
        return _raw_schema(data, name, problem)
    version = manifest_version(data)
    found = block_hash(data)
    facts = [f"block {found}", f"Manifest version {version}, {len(data)} bytes"]
    if _claims_other(name, found):
        facts.append("the name of the file is another hash: these bytes were changed")
    if isinstance(block.event, SetDataSchema):
        facts += _columns(block.event)
    return Decoded(data={**to_manifest(block), "version": version}, facts=tuple(facts))


def _claims_other(name: str, found: Multihash) -> bool:
    try:
        return Multihash.parse(Path(name).name) != found
    except ValueError:
        return False


def _raw_schema(data: bytes, name: str, problem: MalformedBlock) -> Decoded:

    try:
        schema = read_raw(data)
    except ValueError:
        raise ProjectError(
            f"{name} is not a metadata block: {problem}",
            code="E0131",
            notes=(_KNOWN,),
            help="`odfbuild verify` finds damaged blocks of this project",
        ) from None
    return _schema(schema, name, "Arrow schema")


def _arrow_file(file: Any, start: bytes, name: str) -> Decoded:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from odfbuild.odf.schema.pyarrow_form import from_pyarrow

    try:
        if start.startswith(_PARQUET):
            found = pq.ParquetFile(file)
            found = pq.ParquetFile(file)
            rows = found.metadata.num_rows
            schema, what = from_pyarrow(found.schema_arrow), f"Parquet file, {rows} records"
        else:
            schema, what = from_pyarrow(pa.ipc.open_file(file).schema), "Arrow file"
    except Exception as error:  # whatever a library makes of bytes that somebody else wrote
        raise _unknown(name, f"it is a broken Arrow or Parquet file: {error}") from None
    return _schema(schema, name, what)


def _schema(schema: arrow.Schema, name: str, what: str) -> Decoded:
    try:
        return Decoded(data=to_data(odf_form(schema)), facts=(what,))
    except UnsupportedSchemaError as error:
        raise ProjectError(
            f"{name}: {error.message}", code=error.code, notes=error.notes, help=error.help
        ) from None


def _columns(event: SetDataSchema) -> list[str]:
    """The columns of a schema that stands in a block as bytes."""
    if event.raw_arrow_schema is None:
        return []

    try:
        schema = read_raw(event.raw_arrow_schema)
    except ValueError as error:
        return [f"rawArrowSchema cannot be read: {error}"]
    lines = [f"  {each.name}: {each.type}{'' if each.nullable else ' not null'}" for each in schema]
    return ["columns of rawArrowSchema:", *lines]


# --- Text ---


def _document(data: Any, text: str, name: str, index: int) -> Decoded:
    try:
        return _recognised(data, name)
    except DecodeErrors as problems:
        if is_early_block(data):
            raise ProjectError(
                f"{name} is a block of an early chain (Open Data Fabric 0.15 or before), which "
                "odfbuild cannot read",
                code="E0161",
                location=locate(text, name, index, ("content",)),
                help=EARLY_CHAIN,
            ) from None
        old = old_form_problem(data, lambda path: locate(text, name, index, path), name)
        if old is not None:
            raise old from None
        errors = []
        for each in problems.errors:
            find = locate_value if is_about_value(each) else locate
            errors.append(located(each, find(text, name, index, each.path)))
        raise Errors(errors) from None
    except ProjectError as error:
        raise error.at(locate(text, name, index, ("kind",))) from None


def _recognised(data: Any, name: str) -> Decoded:
    if not isinstance(data, Mapping):
        raise _unknown(name, "the document is not an object")
    kind = data.get("kind")
    if isinstance(kind, str) and kind in MANIFEST_VERSIONS:
        value = from_manifest(kind, data)
        return Decoded(data={**to_manifest(value), "version": data["version"]}, facts=(kind,))
    if "content" in data and "version" in data:
        known = " and ".join(MANIFEST_VERSIONS)
        raise _unknown(name, f"manifests of kind {kind} are not known, only {known}")
    if isinstance(kind, str) and kind in _EVENTS:
        event = from_data(getattr(model, _EVENTS[kind]), data)
        facts = ("event", *_columns(event)) if isinstance(event, SetDataSchema) else ("event",)
        return Decoded(data=to_data(event), facts=facts)
    if kind is None and "fields" in data:
        return Decoded(data=to_data(from_data(DataSchema, data)), facts=("data schema",))
    what = f"kind {kind}" if kind is not None else "an object without `kind`"
    raise _unknown(name, f"{what} is not an event, a manifest or a data schema")


def _unknown(name: str, why: str) -> ProjectError:
    return ProjectError(
        f"{name} cannot be decoded: {why}",
        code="E0130",
        location=Location(name),
        notes=(_KNOWN,),
        help="`odfbuild schema` lists the objects of the protocol",
    )
