"""Shares of a result: written by the tasks that computed them, listed by the driver.

Data does not pass through the driver, except shares so small that a file would be a waste.
"""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName, parse_result_name
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.ids import StepName
from noetl.ports.object_store import ObjectStore
from noetl.results.batch_file import ENCODING, JSON, NumberNotFinite, check_finite
from noetl.results.dataset import ROWS, DatasetManifest, DatasetPart, manifest_bytes
from noetl.results.table_file import chunks_of
from noetl.results.tabular import TablePath
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.results.writer import table_reference
from noetl.spark.object_place import ObjectPlace, with_objects

SHARE_IN_ANSWER_BYTES_MAX = 32 * 1024
"""Up to here, as Arrow, a task answers with the rows of its share; more of them are an object."""


class PartsJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is told. `parts` names them all: each has its partition as frame, and the
    number of its try among all of the session, so that two of them never write one object."""

    place: ObjectPlace
    parts: str
    json_columns: list[str]


class PartSaid(msgspec.Struct, frozen=True, kw_only=True):
    row_count: int
    rows: list[Any] | None = None
    reference: ResultReference | None = None


def parts_name(result: ResultName, digest: str) -> ResultName:
    """Of the shares of one run of a job; tasks of playbooks are not called so."""
    return ResultName(
        tenant=result.tenant,
        project=result.project,
        execution_id=result.execution_id,
        step=StepName(result.step),
        task=f"{digest}.parts",
        visit=result.visit,
    )


def stored(job: dict[str, Any], batches: Iterable[Any]) -> tuple[int, bytes] | None:
    """Inside a task: its partition, and a `PartSaid`; None when there are no rows."""
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    # Not its attempt: that begins anew when a stage of Spark is run again.
    attempt = 0 if context is None else context.taskAttemptId()
    told = msgspec.convert(job, PartsJob)
    said = part_of(told, batches, partition, attempt)
    return None if said is None else (partition, msgspec.json.encode(said))


def part_of(job: PartsJob, batches: Iterable[Any], partition: int, attempt: int) -> PartSaid | None:
    arriving = iter(batches)
    first: list[Any] = []
    size = 0
    for batch in arriving:
        if batch.num_rows == 0:
            continue
        first.append(batch)
        size += batch.nbytes
        if size > SHARE_IN_ANSWER_BYTES_MAX:
            name = msgspec.structs.replace(
                parse_result_name(job.parts), frame=partition, attempt=attempt + 1
            )
            return _in_a_file(job, name, _all(first, arriving))
    if not first:
        return None
    rows = [row for batch in first for row in _rows(batch, job.json_columns)]
    return PartSaid(row_count=len(rows), rows=rows)


def commit(place: ObjectPlace, result: ResultName, parts: list[PartSaid]) -> ResultReference:
    """The manifest that makes one table of the shares, under the name of the result."""
    listed: list[DatasetPart] = []
    first = 0
    for part in parts:
        listed.append(
            DatasetPart(
                first=first, rows=part.row_count, reference=part.reference, outcomes=part.rows
            )
        )
        first += part.row_count
    data = manifest_bytes(DatasetManifest(loop={}, parts=listed))
    key = physical_key(result, place.placement, "json")

    async def create(objects: ObjectStore) -> ResultReference:
        stored = await objects.create(key, data, media_type=JSON_MEDIA_TYPE)
        return ResultReference(
            type="object_store",
            uri=result.uri,
            sha256=stored.sha256,
            media_type=JSON_MEDIA_TYPE,
            byte_length=stored.byte_length,
            row_count=first,
        )

    return with_objects(place, create)


def _all(first: list[Any], arriving: Iterator[Any]) -> Iterator[Any]:
    while first:
        yield first.pop(0)
    yield from (batch for batch in arriving if batch.num_rows)


def _in_a_file(job: PartsJob, name: ResultName, batches: Iterator[Any]) -> PartSaid:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    from noetl.results.table_writer import TableWriter  # noqa: PLC0415 - loads Arrow

    head = next(batches)
    schema = _marked(head.schema, job.json_columns)
    with tempfile.TemporaryDirectory(prefix="noetl-part-") as folder:
        path = Path(folder) / "part.feather"
        with TableWriter(path, schema, {ROWS: None}, TablePath((ROWS,))) as writer:
            for batch in chain([head], batches):
                # Spark knows of some columns that they have no nulls; a table's all may.
                writer.write(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            table = writer.close()
        key = physical_key(name, job.place.placement, "feather")

        async def create(objects: ObjectStore) -> ResultReference:
            stored = await objects.create(key, chunks_of(path), media_type=FEATHER_MEDIA_TYPE)
            return table_reference(name, stored, table)

        return PartSaid(row_count=table.row_count, reference=with_objects(job.place, create))


def _marked(schema: Any, json_columns: list[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    marks = {ENCODING: JSON}
    return pa.schema(
        [
            field.with_metadata(marks if field.name in json_columns else None).with_nullable(True)
            for field in schema
        ]
    )


def _rows(batch: Any, json_columns: list[str]) -> list[Any]:
    try:
        check_finite(batch)
    except NumberNotFinite as error:
        raise RequestInvalid(f"the result cannot be recorded: {error}") from error
    rows: list[dict[str, Any]] = batch.to_pylist()
    for row in rows:
        for name in json_columns:
            row[name] = None if row[name] is None else msgspec.json.decode(row[name])
    return rows
