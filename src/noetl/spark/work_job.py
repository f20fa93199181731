"""What a driver is told of a playbook's own job, and what it says when that is done."""

from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
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
