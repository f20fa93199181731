"""What a Spark task does with its share of a result: store it, and say one row about it.

Travels by value, like the task of a slot, and for the same reason.
"""

import importlib
import platform
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from noetl.spark import slot_task

if TYPE_CHECKING:
    from pyarrow import RecordBatch

PART_SCHEMA = "partition int, said binary"


def part_task(
    job: dict[str, Any], expected: dict[str, str]
) -> Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]:
    """A function for `mapInArrow`."""

    def run(batches: Iterator["RecordBatch"]) -> Iterator["RecordBatch"]:
        slot_task.check_versions(expected, slot_task.versions(), platform.node())
        pyarrow = importlib.import_module("pyarrow")
        said = importlib.import_module("noetl.spark.parts").stored(job, batches)
        if said is not None:
            partition, answer = said
            columns = [pyarrow.array([partition], pyarrow.int32()), pyarrow.array([answer])]
            yield pyarrow.RecordBatch.from_arrays(columns, names=["partition", "said"])

    return slot_task.frozen(run)
