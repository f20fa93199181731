"""A playbook's own query or function on Spark: named inputs in, a stored table or a value out."""

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.kernel import canonical_json
from noetl.kernel.errors import RequestInvalid
from noetl.ports.spark_jobs import SparkInput, SparkWrite
from noetl.spark import part_task, slot_task
from noetl.spark.parts import PartSaid, PartsJob, commit, part_of, parts_name
from noetl.spark.plain_frames import plain_frame
from noetl.spark.work_code import called
from noetl.spark.work_job import WorkAnswer, WorkJob, result_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VALUE_BYTES_MAX = 256 * 1024
"""Rows of no more bytes are the result itself; more are stored by those who computed them."""


def run_work(session: "SparkSession", job: WorkJob) -> WorkAnswer:
    """Blocks. The session is the job's own: its views are nobody else's."""
    from noetl.spark.data_source import register_at  # noqa: PLC0415 - loads pyspark

    order = job.order
    for name, value in order.options.items():
        session.conf.set(name, value)
    register_at(session, job.place)
    frames = {each.name: frame_of(session, each) for each in order.inputs}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    if order.query is not None:
        return _answer(session, job, session.sql(order.query))
    return _answer(session, job, called(order, session, {**order.arguments, **frames}))


def frame_of(session: "SparkSession", given: SparkInput) -> "DataFrame":
    if given.result is not None:
        reader = session.read.format("noetl.results").options(**given.options)
        return reader.load(given.result)
    if given.rows is not None:
        return _frame_of_rows(session, given.rows)
    if given.table is not None:
        return session.table(given.table)
    reader = session.read.format(given.format or "parquet").options(**given.options)
    return reader.load(given.path)


def _answer(session: "SparkSession", job: WorkJob, result: Any) -> WorkAnswer:
    from pyspark.sql import DataFrame  # noqa: PLC0415 - an extra

    if job.order.write is not None and not isinstance(result, DataFrame):
        result = _as_frame(session, result)
    if not isinstance(result, DataFrame):
        return _of_data(job, result)
    if job.order.write is not None:
        return WorkAnswer(value=_written(result, job.order.write))
    if not result.columns:  # a statement that gives nothing has been carried out by now
        return WorkAnswer(value=[])
    plain, json_columns = plain_frame(result)
    told = PartsJob(place=job.place, parts=_parts(job), json_columns=json_columns)
    task = part_task.part_task(msgspec.to_builtins(told), slot_task.versions())
    _by_value()
    rows = plain.mapInArrow(task, part_task.PART_SCHEMA).collect()
    said = [
        msgspec.json.decode(bytes(row.said), type=PartSaid)
        for row in sorted(rows, key=lambda row: int(row.partition))
    ]
    return _of_parts(job, said)


def _of_parts(job: WorkJob, parts: list[PartSaid]) -> WorkAnswer:
    if all(part.rows is not None for part in parts):
        rows = [row for part in parts for row in part.rows or ()]
        if len(msgspec.json.encode(rows)) <= VALUE_BYTES_MAX:
            return WorkAnswer(value=rows)
    return WorkAnswer(reference=commit(job.place, result_name(job.order), parts))


def _of_data(job: WorkJob, result: Any) -> WorkAnswer:
    """What a function brought here itself: a table, or plain data."""
    table = _as_table(result)
    if table is None:
        canonical_json.check_plain(result, "the result")
        return WorkAnswer(value=result)
    told = PartsJob(place=job.place, parts=_parts(job), json_columns=[])
    part = part_of(told, table.to_batches(), 0, 0)
    return _of_parts(job, [] if part is None else [part])


def _as_table(result: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    if isinstance(result, pa.RecordBatch):
        return pa.Table.from_batches([result])
    if isinstance(result, pa.Table):
        return result
    is_pandas = hasattr(result, "memory_usage") and hasattr(result, "columns")
    return pa.Table.from_pandas(result, preserve_index=False) if is_pandas else None


def _as_frame(session: "SparkSession", result: Any) -> "DataFrame":
    table = _as_table(result)
    if table is not None:
        return session.createDataFrame(table)
    if isinstance(result, list):
        return _frame_of_rows(session, result)
    raise RequestInvalid(f"`write` needs rows, and the code gave a {type(result).__name__}")


def _frame_of_rows(session: "SparkSession", rows: list[Any]) -> "DataFrame":
    from noetl.results.dataset_tables import table_of_rows  # noqa: PLC0415 - loads Arrow

    return session.createDataFrame(table_of_rows(rows))


def _written(frame: "DataFrame", write: SparkWrite) -> dict[str, Any]:
    from pyspark.sql import Observation  # noqa: PLC0415 - an extra
    from pyspark.sql.functions import count, lit  # noqa: PLC0415 - an extra

    counted = Observation("noetl")
    observed = frame.observe(counted, count(lit(1)).alias("rows"))
    writer = observed.write.format(write.format).mode(write.mode).options(**write.options)
    if write.partition_by:
        writer = writer.partitionBy(*write.partition_by)
    if write.table is not None:
        writer.saveAsTable(write.table)
    else:
        writer.save(write.path)
    told = {"table": write.table} if write.table is not None else {"path": write.path}
    return {**told, "format": write.format, "mode": write.mode, "rows": counted.get["rows"]}


def _parts(job: WorkJob) -> str:
    name = result_name(job.order)
    digest = hashlib.sha256(f"{name.uri} {job.tries}".encode()).hexdigest()[:16]
    return parts_name(name, digest).uri


def _by_value() -> None:
    from pyspark import cloudpickle  # noqa: PLC0415 - an extra

    for module in (slot_task, part_task):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
