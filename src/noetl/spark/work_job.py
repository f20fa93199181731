"""What a driver is told of a playbook's own job, and what it says when that is done."""

from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import ResultName, parse_result_name
from noetl.ports.spark_jobs import SparkOrder
from noetl.spark.object_place import ObjectPlace


class WorkJob(msgspec.Struct, frozen=True, kw_only=True):
    tag: str
    session_id: str  # of its own with Connect, so that a later driver can name it
    order: SparkOrder
    place: ObjectPlace
    pool: str = "tools"
    tries: int = 1  # drivers that have begun it, this one included


class WorkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    value: Any = None
    reference: ResultReference | None = None


def result_name(order: SparkOrder) -> ResultName:
    """Of a retry by a rule another: what the try before it made stays what it is."""
    name = parse_result_name(order.result)
    if order.attempt == 1:
        return name
    return msgspec.structs.replace(name, task=f"{name.task or name.step}.try{order.attempt}")
