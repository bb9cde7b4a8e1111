"""`ingest:` in `odfbuild.yaml`: limits of fetching and preparing, and what fetch steps run on.

Belongs to the machine and the team, not to a dataset, so it stays out of definitions and chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from odfbuild.declared_settings import Fits, setting
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.contract import OnSchemaChange, ReadPolicies

Policy = TypeVar("Policy", bound=str)
Seconds = Annotated[float, Fits(exclusiveMinimum=0)]
Count = Annotated[int, Fits(minimum=1)]
_LAST = "; the last pattern that matches counts"


class IngestSettings(Value, kw_only=True):
    """Times in seconds, sizes in bytes; the defaults are those of an absent `ingest:`."""

    connect_seconds: Seconds = setting(30)
    idle_seconds: Seconds = setting(60, "How long a source may be silent")
    total_seconds: Seconds = setting(21600, "How long one download, container or pipe may take")
    attempts: Count = setting(4, "Requests before giving up")
    max_bytes: Count = setting(50 << 30, "Largest download")
    max_unpacked_bytes: Count = setting(50 << 30, "Most bytes that one prepare step may write")
    bad_records: Mapping[str, Literal["fail", "skip"]] = setting(
        {},
        "By pattern of dataset names, what becomes of records that do not fit their schema"
        f"{_LAST}; default: fail",
    )
    on_schema_change: Mapping[str, Literal["fail", "ignore", "append_new_columns"]] = setting(
        {},
        "By pattern of dataset names, what becomes of a source with other columns than expected"
        f"{_LAST}; default: fail",
    )
    duplicate_keys: Mapping[str, Literal["fail", "warn", "last"]] = setting(
        {},
        "By pattern of dataset names, what becomes of a snapshot in which a key has several "
        f"records{_LAST}; default: fail",
    )
    local_times: Mapping[str, Literal["fail", "earlier"]] = setting(
        {},
        "By pattern of dataset names, what becomes of times with the name of a zone whose clocks "
        "never showed them (`earlier`: moved forward) or showed them twice (`earlier`: the first)"
        f"{_LAST}; default: fail",
    )
    late_files: Mapping[str, Literal["read", "warn", "fail"]] = setting(
        {},
        "By pattern of dataset names, what becomes of files that come before the last one that "
        f"was read, in the order of their source{_LAST}; default: warn",
    )
    blank_event_times: Mapping[str, Literal["fail", "fill"]] = setting(
        {},
        "By pattern of dataset names, what becomes of records whose event time is blank: `fill` "
        "gives them that of their file, or the time of ingestion, which moves the watermark"
        f"{_LAST}; default: fail",
    )
    shapefile_encodings: Mapping[str, str] = setting(
        {},
        "By pattern of dataset names, the encoding of attributes of shapefiles, whatever the "
        f"archive says{_LAST}",
        key="shapefileEncoding",
    )
    quoted_line_breaks: Mapping[str, Literal["fail", "read"]] = setting(
        {},
        "By pattern of dataset names, what becomes of line breaks in quoted values of CSV, which "
        f"`read` keeps as they are (RFC 4180){_LAST}; default: fail",
    )
    target_records: Count = setting(
        10_000,
        "Records that a container or a broker is asked for at once",
        key="targetRecordsPerSlice",
    )
    container_runtime: tuple[str, ...] = setting(
        (),
        "Program and its global options; default: the first of podman, docker and nerdctl on the "
        "path; only in the configuration of the machine",
        key="container.runtime",
    )
    container_arguments: tuple[str, ...] = setting(
        (),
        "More options of its command `run`; only in the configuration of the machine",
        key="container.arguments",
    )
    pipes: tuple[str, ...] = setting(
        (),
        "Programs that `prepare` steps of kind Pipe may run, as patterns of their names; only in "
        "the configuration of the machine; default: none",
    )
    mqtt_idle_seconds: Seconds = setting(
        1, "Silence after which a batch of messages is complete", key="mqtt.idleSeconds"
    )
    ethereum_nodes: Mapping[str, str] = setting(
        {}, "Addresses of nodes by chain id; may hold ${{ env.X }}", key="ethereum.nodes"
    )
    ethereum_block_stride: Count = setting(
        10_000, "Blocks that one request spans at most", key="ethereum.blockStride"
    )
    ethereum_blocks_per_commit: Count = setting(1_000_000, key="ethereum.blocksPerCommit")
    ethereum_confirmations: Annotated[int, Fits(minimum=0)] = setting(
        0, "How many of the newest blocks are left for later", key="ethereum.confirmations"
    )

    def skips_bad_records(self, dataset: str) -> bool:
        """Whether records of a dataset that do not fit are left out instead of an error."""
        return _last_match(self.bad_records, dataset) == "skip"

    def schema_policy(self, dataset: str) -> OnSchemaChange:
        """What becomes of a source of a dataset whose columns are not the expected ones."""
        return _last_match(self.on_schema_change, dataset) or "fail"

    def late_policy(self, dataset: str) -> Literal["read", "warn", "fail"]:
        """What becomes of files of a dataset that come before the last one that was read."""
        return _last_match(self.late_files, dataset) or "warn"

    def reads_line_breaks(self, dataset: str) -> bool:
        """Whether quoted values of CSV files of a dataset may hold line breaks."""
        return _last_match(self.quoted_line_breaks, dataset) == "read"

    def policies(self, dataset: str) -> ReadPolicies:
        """How data of a dataset is read."""
        from odfbuild.engine.contract import ReadPolicies

        return ReadPolicies(
            skip_bad_records=self.skips_bad_records(dataset),
            on_schema_change=self.schema_policy(dataset),
            duplicate_keys=_last_match(self.duplicate_keys, dataset) or "fail",
            blank_event_times=_last_match(self.blank_event_times, dataset) or "fail",
            local_times=_last_match(self.local_times, dataset) or "fail",
            shapefile_encoding=_last_match(self.shapefile_encodings, dataset),
            line_breaks=self.reads_line_breaks(dataset),
        )


def _last_match(patterns: Mapping[str, Policy], dataset: str) -> Policy | None:
    name = dataset.lower()
    found = [v for k, v in patterns.items() if fnmatchcase(name, k.lower())]
    return found[-1] if found else None
