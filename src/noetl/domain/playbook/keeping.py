"""What an `output` block asks for: inside the event, outside of it, or wherever the size says."""

from collections.abc import Iterable
from operator import ne
from typing import Literal

import msgspec

from noetl.domain.playbook.model import Step
from noetl.domain.playbook.task import Task
from noetl.domain.playbook.values import Output, ResultStore
from noetl.kernel.ids import StepName

Place = Literal["by_size", "inside", "outside"]

_PLACES: dict[str, Place] = {
    "auto": "by_size",
    "memory": "by_size",  # nothing is kept in memory alone
    "kv": "outside",
    "disk": "outside",
    "object": "outside",
    "s3": "outside",
    "gcs": "outside",
    "azure": "outside",
    "db": "outside",
    "duckdb": "outside",
    "eventlog": "inside",
    "inline": "inside",
    "minio": "outside",
    "pvc": "outside",
}

STORE_KINDS = tuple(_PLACES)
"""Words for places. All that are outside mean one: the object store that the cell has."""

_DEFAULT = Output()


def place_of(store: ResultStore) -> Place:
    return _PLACES[store.kind]


def output_of(step: Step, task: Task | None = None) -> Output:
    """What counts for the result of a task, or of the step; a lone tool's result is the step's."""
    if task is None and not step.is_pipeline and step.tasks:
        task = step.tasks[0]
    own = None if task is None else task.output
    return step.output if own is None else _merged(own, step.output)


def is_renamed(output: Output) -> bool:
    """Whether it gives names to the result, or to fields of it, that they do not have."""
    own = (each.path.rpartition(".")[2] for each in output.select)
    return output.name is not None or any(map(ne, own, (each.name for each in output.select)))


def aliases_of(steps: Iterable[Step]) -> dict[str, StepName]:
    """Other names that templates may use for the results of steps."""
    named = {step.name: output_of(step).name for step in steps}
    return {alias: step for step, alias in named.items() if alias is not None}


def _merged(own: Output, outer: Output) -> Output:
    """The task's word first; where it says nothing, the step's."""
    return msgspec.structs.replace(
        own,
        store=outer.store if own.store == _DEFAULT.store else own.store,
        select=own.select + tuple(each for each in outer.select if each not in own.select),
        inline_bytes_max=_first(own.inline_bytes_max, outer.inline_bytes_max),
        preview_bytes_max=_first(own.preview_bytes_max, outer.preview_bytes_max),
        name=own.name or outer.name,
    )


def _first(own: int | str | None, outer: int | str | None) -> int | str | None:
    return outer if own is None else own
