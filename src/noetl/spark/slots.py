"""A slot job: N Spark tasks that run one function each, told which slot they are."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from noetl.kernel.errors import RequestInvalid
from noetl.spark import slot_task
from noetl.spark.worker_daemon import FOR_SLOTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS_MAX = 10_000
ARGUMENT_BYTES_MAX = 4_000_000
SUMMARY_BYTES_MAX = 64_000  # ids and paths go in, counts come out; data takes other ways

Tag = Annotated[str, msgspec.Meta(pattern=r"^[^,]+$")]  # Spark joins tags by commas


class SlotJob(msgspec.Struct, frozen=True, kw_only=True):
    """The argument travels inside the closure: in no row, setting, environment or plan."""

    tag: Tag
    stage_id: str
    slots: Annotated[int, msgspec.Meta(ge=1, le=SLOTS_MAX)]
    function: Annotated[str, msgspec.Meta(pattern=r"^[\w.]+:\w+$")]  # module:function
    argument: bytes = b""
    description: str = ""
    pool: str = "stages"
    # A later job over the same stage starts above all the attempts of earlier ones.
    incarnation_first: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __repr__(self) -> str:
        return f"SlotJob({self.tag!r}, stage {self.stage_id!r}, {self.slots} of {self.function})"


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Who a running function is. Of two with one number, the higher incarnation is the real one."""

    tag: str
    stage_id: str
    number: int
    incarnation: int


class SlotSummary(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    incarnation: int
    host: str
    summary: bytes


# What a job names: it blocks until its slot has no more to do, and raises to be tried again.
SlotFunction = Callable[[Slot, bytes], bytes]


def slot_frame(session: "SparkSession", job: SlotJob) -> "DataFrame":
    """The job as a data frame: one row for each slot, each in a task of its own."""
    from pyspark import cloudpickle  # noqa: PLC0415 - an extra

    cloudpickle.register_pickle_by_value(slot_task)  # type: ignore[no-untyped-call]
    task = slot_task.slot_task(_closure(job), slot_task.versions())
    numbers = session.range(0, job.slots, 1, numPartitions=job.slots)
    frame = numbers.mapInArrow(task, slot_task.ROW_SCHEMA)
    if "connect" not in type(session).__module__:  # there it is the server's to say
        _give_own_workers(frame)
    return frame


def _give_own_workers(frame: Any) -> None:
    """Spark keeps Python workers apart by their variables: slots leave things in theirs that no
    code of playbooks should meet. In the plan, because the variables of the context are shared:
    what other threads make of them at this moment would run in the workers of slots."""
    plan = frame._jdf.queryExecution().analyzed()
    plan.functionExpr().func().envVars()[FOR_SLOTS] = "1"


def run_slots(session: "SparkSession", job: SlotJob) -> tuple[SlotSummary, ...]:
    """Blocks until every slot said its row."""
    rows = slot_frame(session, job).collect()
    found = [
        SlotSummary(
            number=row.slot,
            incarnation=row.incarnation,
            host=row.host,
            summary=bytes(row.summary),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda summary: summary.number))


def run_slot(job: dict[str, Any], number: int) -> tuple[int, bytes]:
    """Inside a task: the incarnation, and what the function says about its work."""
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    incarnation = job["incarnation_first"] + attempt
    slot = Slot(tag=job["tag"], stage_id=job["stage_id"], number=number, incarnation=incarnation)
    summary = slot_function(job["function"])(slot, job["argument"])
    if len(summary) > SUMMARY_BYTES_MAX:
        raise RequestInvalid(
            f"{job['function']} says {len(summary)} bytes; a summary has {SUMMARY_BYTES_MAX}"
        )
    return incarnation, summary


def slot_function(name: str) -> SlotFunction:
    module, _, function = name.partition(":")
    found: SlotFunction = getattr(importlib.import_module(module), function)
    return found


def _closure(job: SlotJob) -> dict[str, Any]:
    """As plain values, which any version of this module can read."""
    kept = ("tag", "stage_id", "function", "argument", "incarnation_first")
    return {name: getattr(job, name) for name in kept}
