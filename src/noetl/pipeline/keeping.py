"""Results as their `output` blocks want them kept, each with the name of the one before it."""

from dataclasses import dataclass
from typing import Any

import msgspec

from noetl.domain.events.values import ParentReference, Result
from noetl.domain.naming.result_name import ResultName
from noetl.domain.playbook.keeping import output_of, place_of
from noetl.domain.playbook.model import Step
from noetl.domain.playbook.task import Task
from noetl.domain.playbook.values import Output
from noetl.pipeline.job import Job
from noetl.results.store import ResultStore
from noetl.templates.extract import EXTRACT_BYTES_MAX
from noetl.templates.recorded import STORE, content_of
from noetl.templates.selected import Chosen, chosen_of, chosen_of_task, with_chosen

INSIDE_BYTES_MAX = 163_840
"""The most that a playbook can have inside an event: what it writes has to fit there too."""


@dataclass(frozen=True, slots=True)
class Keeping:
    output: Output
    step: Step | None = None  # given for a pipeline's own result: its tasks select too
    parent: str | None = None  # the name of the result before it

    async def record(
        self, store: ResultStore, name: ResultName, value: Any, status: str = "ok"
    ) -> Result:
        limit = inline_bytes_max(self.output, store.inline_bytes_max)
        result = await store.record(name, value, status=status, inline_bytes_max=limit)
        if self.parent is not None:
            parent = ParentReference(ref_id=self.parent)
            result = msgspec.structs.replace(result, parent_ref=parent)
        if result.reference is not None and place_of(self.output.store) == "outside":
            context = {**result.context, STORE: self.output.store.kind}
            result = msgspec.structs.replace(result, context=context)
        return self._with_chosen(result, value)

    def _with_chosen(self, result: Result, value: Any) -> Result:
        is_selected = self.output.select or (self.step is not None and _selects(self.step))
        preview = preview_bytes_max(self.output)
        if not is_selected and (preview is None or result.reference is None):
            return result
        content = content_of(value)
        return with_chosen(result, content, self._chosen(content), preview)

    def _chosen(self, content: dict[str, Any]) -> Chosen:
        chosen = chosen_of(content, self.output.select)
        for task in () if self.step is None else self.step.tasks:
            if task.output is not None:
                found = chosen_of_task(content, task.name, task.output.select)
                chosen = chosen.and_paths(found)
        return chosen


def keeping_of_step(step: Step, parent: str | None) -> Keeping:
    return Keeping(output_of(step), step if step.is_pipeline else None, parent)


def keeping_of_task(step: Step, task: Task, parent: str | None) -> Keeping:
    return Keeping(output_of(step, task), None, parent)


def name_of(job: Job, task: str, run: int) -> ResultName:
    """A lone tool's result is the step's: it is stored once, under the step's name.

    In a loop that name is the frame's: its rows together are stored under it.
    """
    is_own = job.step.is_pipeline or run > 1 or job.is_in_loop
    return job.result_name(task, run) if is_own else job.result_name()


def inline_bytes_max(output: Output, usual: int) -> int:
    """What a playbook asks for, within the budget of an event."""
    place = place_of(output.store)
    if place == "outside":
        return 0
    budget = INSIDE_BYTES_MAX if place == "inside" else usual
    asked = output.inline_bytes_max
    return min(asked, budget) if isinstance(asked, int) else budget


def preview_bytes_max(output: Output) -> int | None:
    asked = output.preview_bytes_max
    return min(asked, EXTRACT_BYTES_MAX) if isinstance(asked, int) else None


def _selects(step: Step) -> bool:
    return any(task.output is not None and task.output.select for task in step.tasks)
