"""`ingest:` in `odfbuild.yaml`: limits of fetching and preparing, and what fetch steps run on.

Belongs to the machine and the team, not to a dataset, so it stays out of definitions and chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from odfbuild.values import dataclass

if TYPE_CHECKING:
    from odfbuild.engine.contract import DuplicateKeys, OnSchemaChange

_SECONDS = {"type": "number", "exclusiveMinimum": 0}
_COUNT = {"type": "integer", "minimum": 1}
_WORDS = {"type": "array", "items": {"type": "string"}}

CONTAINER: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "description": "Only in the configuration of the machine",
    "properties": {
        "runtime": {
            **_WORDS,
            "description": "Program and its global options; default: the first of podman, "
            "docker and nerdctl on the path",
        },
        "arguments": {**_WORDS, "description": "More options of its command `run`"},
    },
}
PIPES: dict[str, Any] = {
    **_WORDS,
    "description": "Programs that `prepare` steps of kind Pipe may run, as patterns of their "
    "names; only in the configuration of the machine; default: none",
}
"""What the owner of the machine decides about programs."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "description": "How sources are fetched and prepared",
    "properties": {
        "connectSeconds": {**_SECONDS, "default": 30},
        "idleSeconds": {
            **_SECONDS,
            "default": 60,
            "description": "How long a source may be silent",
        },
        "totalSeconds": {
            **_SECONDS,
            "default": 21600,
            "description": "How long one download, container or pipe may take",
        },
        "attempts": {**_COUNT, "default": 4, "description": "Requests before giving up"},
        "maxBytes": {**_COUNT, "default": 50 << 30, "description": "Largest download"},
        "maxUnpackedBytes": {
            **_COUNT,
            "default": 50 << 30,
            "description": "Most bytes that one prepare step may write",
        },
        "badRecords": {
            "type": "object",
            "additionalProperties": {"type": "string", "enum": ["fail", "skip"]},
            "description": "By pattern of dataset names, what becomes of records that do not fit "
            "their schema; the last pattern that matches counts; default: fail",
        },
        "onSchemaChange": {
            "type": "object",
            "additionalProperties": {
                "type": "string",
                "enum": ["fail", "ignore", "append_new_columns"],
            },
            "description": "By pattern of dataset names, what becomes of a source with other "
            "columns than expected; the last pattern that matches counts; default: fail",
        },
        "duplicateKeys": {
            "type": "object",
            "additionalProperties": {"type": "string", "enum": ["fail", "warn", "last"]},
            "description": "By pattern of dataset names, what becomes of a snapshot in which a key "
            "has several records; the last pattern that matches counts; default: fail",
        },
        "shapefileEncoding": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "By pattern of dataset names, the encoding of attributes of shapefiles, "
            "whatever the archive says; the last pattern that matches counts",
        },
        "targetRecordsPerSlice": {
            **_COUNT,
            "default": 10_000,
            "description": "Records that a container or a broker is asked for at once",
        },
        "container": CONTAINER,
        "pipes": PIPES,
        "mqtt": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "idleSeconds": {
                    **_SECONDS,
                    "default": 1,
                    "description": "Silence after which a batch of messages is complete",
                },
            },
        },
        "ethereum": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "nodes": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Addresses of nodes by chain id; may hold ${{ env.X }}",
                },
                "blockStride": {
                    **_COUNT,
                    "default": 10_000,
                    "description": "Blocks that one request spans at most",
                },
                "blocksPerCommit": {**_COUNT, "default": 1_000_000},
                "confirmations": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "How many of the newest blocks are left for later",
                },
            },
        },
    },
}
"""What `ingest:` may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """Times in seconds, sizes in bytes; the defaults are those of an absent `ingest:`."""

    connect_seconds: float = 30
    idle_seconds: float = 60
    total_seconds: float = 21600
    attempts: int = 4
    max_bytes: int = 50 << 30
    max_unpacked_bytes: int = 50 << 30
    bad_records: Mapping[str, str] = field(default_factory=dict)
    on_schema_change: Mapping[str, str] = field(default_factory=dict)
    duplicate_keys: Mapping[str, str] = field(default_factory=dict)
    shapefile_encodings: Mapping[str, str] = field(default_factory=dict)
    target_records: int = 10_000
    container_runtime: tuple[str, ...] = ()
    container_arguments: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    mqtt_idle_seconds: float = 1
    ethereum_nodes: Mapping[str, str] = field(default_factory=dict)
    ethereum_block_stride: int = 10_000
    ethereum_blocks_per_commit: int = 1_000_000
    ethereum_confirmations: int = 0

    def skips_bad_records(self, dataset: str) -> bool:
        """Whether records of a dataset that do not fit are left out instead of an error."""
        return _last_match(self.bad_records, dataset) == "skip"

    def schema_policy(self, dataset: str) -> OnSchemaChange:
        """What becomes of a source of a dataset whose columns are not the expected ones."""
        match _last_match(self.on_schema_change, dataset):
            case "ignore":
                return "ignore"
            case "append_new_columns":
                return "append_new_columns"
        return "fail"

    def key_policy(self, dataset: str) -> DuplicateKeys:
        """What becomes of a snapshot of a dataset in which a key has several records."""
        match _last_match(self.duplicate_keys, dataset):
            case "warn":
                return "warn"
            case "last":
                return "last"
        return "fail"

    def shapefile_encoding(self, dataset: str) -> str | None:
        """What the attributes of shapefiles of a dataset are in; `None`: as the archive says."""
        return _last_match(self.shapefile_encodings, dataset)


def _last_match(patterns: Mapping[str, str], dataset: str) -> str | None:
    name = dataset.lower()
    found = [v for k, v in patterns.items() if fnmatchcase(name, k.lower())]
    return found[-1] if found else None


_KEYS = {
    "connectSeconds": "connect_seconds",
    "idleSeconds": "idle_seconds",
    "totalSeconds": "total_seconds",
    "attempts": "attempts",
    "maxBytes": "max_bytes",
    "maxUnpackedBytes": "max_unpacked_bytes",
    "badRecords": "bad_records",
    "onSchemaChange": "on_schema_change",
    "duplicateKeys": "duplicate_keys",
    "shapefileEncoding": "shapefile_encodings",
    "targetRecordsPerSlice": "target_records",
    "pipes": "pipes",
    "container.runtime": "container_runtime",
    "container.arguments": "container_arguments",
    "mqtt.idleSeconds": "mqtt_idle_seconds",
    "ethereum.nodes": "ethereum_nodes",
    "ethereum.blockStride": "ethereum_block_stride",
    "ethereum.blocksPerCommit": "ethereum_blocks_per_commit",
    "ethereum.confirmations": "ethereum_confirmations",
}


def settings_from(data: Mapping[str, Any]) -> IngestSettings:
    """Settings from data that fits `SCHEMA`."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if key in _KEYS:
            flat[_KEYS[key]] = tuple(value) if isinstance(value, list) else value
            continue
        for inner, deep in value.items():
            flat[_KEYS[f"{key}.{inner}"]] = tuple(deep) if isinstance(deep, list) else deep
    return IngestSettings(**flat)
