"""Steps of datasets as events of OpenLineage, for catalogues that read these. Pure.

A block is a run that is complete: its identity follows from the hash of the block, so that the same
step is the same run whenever it is told. Source: OpenLineage 2-0-2, core and facets.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from odfbuild.exchange.tables.remembered import PublishedTable
from odfbuild.inspect.steps import ReadInput, Step
from odfbuild.odf.model import ExecuteTransform, TransformSql
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.version import __version__

PRODUCER = f"urn:odfbuild:{__version__}"
_SPEC = "https://openlineage.io/spec/"
_CORE = f"{_SPEC}2-0-2/OpenLineage.json#/$defs/"
_RUNS = uuid.uuid5(uuid.NAMESPACE_URL, "https://opendatafabric.org/blocks")
Data = dict[str, Any]


def run_events(steps: Iterable[Step], namespace: str) -> Iterator[Data]:
    """A `COMPLETE` run event for each step; datasets and jobs are in `namespace`."""
    for step in steps:
        yield {
            "eventType": "COMPLETE",
            "eventTime": str(step.block.system_time),
            "producer": PRODUCER,
            "schemaURL": f"{_CORE}RunEvent",
            "run": {
                "runId": str(uuid.uuid5(_RUNS, str(step.hash))),
                "facets": _run_facets(step),
            },
            "job": {"namespace": namespace, "name": step.name, "facets": _job_facets(step)},
            "inputs": [
                *(_input(each, namespace) for each in step.inputs),
                *([_source(step.source)] if step.source is not None else []),
            ],
            "outputs": [_output(step, namespace)],
        }


def table_events(published: Iterable[PublishedTable], namespace: str) -> Iterator[Data]:
    """A `COMPLETE` run event for the newest publication of each table."""
    for each in published:
        table, block = each.table, str(each.block)
        run = uuid.uuid5(_RUNS, f"{block} {table.format} {table.address}")
        yield {
            "eventType": "COMPLETE",
            "eventTime": str(each.time),
            "producer": PRODUCER,
            "schemaURL": f"{_CORE}RunEvent",
            "run": {"runId": str(run), "facets": {}},
            "job": {
                "namespace": namespace,
                "name": f"publish {table.name}",
                "facets": {
                    "jobType": {
                        **_facet("2-0-3", "JobTypeJobFacet"),
                        "processingType": "BATCH",
                        "integration": "ODF",
                        "jobType": "PUBLISH",
                    }
                },
            },
            "inputs": [
                {"namespace": namespace, "name": table.dataset}
                | {"facets": {"version": _version(block)}}
            ],
            "outputs": [
                {
                    **_source(table.address),
                    "facets": {
                        "version": _version(block),
                        "storage": {
                            **_facet("1-0-1", "StorageDatasetFacet"),
                            "storageLayer": table.format,
                            "fileFormat": "parquet",
                        },
                    },
                }
            ],
        }


def _run_facets(step: Step) -> Data:
    block = {
        "blockHash": str(step.hash),
        "prevBlockHash": str(step.block.prev_block_hash),
        "sequenceNumber": step.block.sequence_number,
    }
    facets = {"odf_block": {**_custom("RunFacet"), **block}}
    transform = _transform(step)
    if transform is not None and transform.version is not None:
        facets["processing_engine"] = {
            **_facet("1-1-1", "ProcessingEngineRunFacet"),
            "name": transform.engine,
            "version": transform.version,
        }
    return facets


def _job_facets(step: Step) -> Data:
    kind = "TRANSFORM" if isinstance(step.event, ExecuteTransform) else "INGEST"
    facets: Data = {
        "jobType": {
            **_facet("2-0-3", "JobTypeJobFacet"),
            "processingType": "BATCH",
            "integration": "ODF",
            "jobType": kind,
        }
    }
    transform = _transform(step)
    if transform is not None:
        queries = [each.query for each in transform.queries or ()] or [transform.query or ""]
        facets["sql"] = {**_facet("1-1-0", "SQLJobFacet"), "query": ";\n".join(queries)}
    return facets


def _transform(step: Step) -> TransformSql | None:
    if not isinstance(step.event, ExecuteTransform) or step.state.transform is None:
        return None
    return step.state.transform.transform


def _input(each: ReadInput, namespace: str) -> Data:
    found: Data = {"namespace": namespace, "name": each.name}
    if each.block is not None:
        found["facets"] = {"version": _version(str(each.block))}
    return found


def _source(source: str) -> Data:
    """What a root reads, by the naming of OpenLineage: host and path, or `file` and path."""
    scheme, _, rest = source.partition("://")
    if not rest:
        return {"namespace": "file", "name": source}
    address = rest.partition("?")[0].partition("#")[0]  # what follows may be a key
    host, _, path = address.partition("/")
    return {"namespace": f"{scheme}://{host.rpartition('@')[2]}", "name": f"/{path}"}


def _output(step: Step, namespace: str) -> Data:
    facets: Data = {
        "version": _version(str(step.hash)),
        "odf_identity": {**_custom("DatasetFacet"), "datasetId": str(step.state.dataset_id)},
    }
    if step.state.schema is not None:
        facets["schema"] = {
            **_facet("1-1-1", "SchemaDatasetFacet"),
            "fields": [
                {"name": each.name, "type": str(each.type)}
                for each in read_schema(step.state.schema)
            ],
        }
    info = step.state.info
    if info is not None and info.description:
        facets["documentation"] = {
            **_facet("1-0-1", "DocumentationDatasetFacet"),
            "description": info.description,
        }
    if step.lineage is not None:
        facets["columnLineage"] = {
            **_facet("1-0-1", "ColumnLineageDatasetFacet"),
            "fields": {
                column: {
                    "inputFields": [
                        {"namespace": namespace, "name": name, "field": field}
                        for name, field in origins
                    ]
                }
                for column, origins in step.lineage.items()
            },
        }
    return {
        "namespace": namespace,
        "name": step.name,
        "facets": facets,
        "outputFacets": {"outputStatistics": _statistics(step)},
    }


def _statistics(step: Step) -> Data:
    data = step.event.new_data
    if data is None:
        raise AssertionError("a step has records")
    interval = data.offset_interval
    return {
        **_facet("1-0-2", "OutputStatisticsOutputDatasetFacet"),
        "rowCount": interval.end - interval.start + 1,
        "size": data.size,
    }


def _version(block: str) -> Data:
    return {**_facet("1-0-1", "DatasetVersionDatasetFacet"), "datasetVersion": block}


def _facet(version: str, name: str) -> Data:
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{_SPEC}facets/{version}/{name}.json#/$defs/{name}",
    }


def _custom(kind: str) -> Data:
    """Base of a facet of our own, which any reader of OpenLineage passes on."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_CORE}{kind}"}
