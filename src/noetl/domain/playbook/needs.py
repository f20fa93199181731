"""Which tools the work of a step needs, as far as the playbook says it."""

from noetl.domain.playbook.loop import Cursor
from noetl.domain.playbook.model import Playbook, Step
from noetl.kernel.ids import StepName

_WORKBOOK = "workbook"

Kinds = frozenset[str]
"""Kinds of tools; empty: nothing in particular."""

ANY: Kinds = frozenset()


def kinds_needed(playbook: Playbook, name: StepName) -> Kinds:
    """A task of the workbook that a template names may be any of them, so it asks for none."""
    step = playbook.steps.get(name)
    return ANY if step is None else frozenset(_kinds(playbook, step))


def _kinds(playbook: Playbook, step: Step) -> list[str]:
    kinds = [task.kind for task in step.tasks if task.kind != _WORKBOOK]
    for task in step.tasks:
        named = playbook.workbook.get(str(task.parameters.get("name")))
        if task.kind == _WORKBOOK and named is not None:
            kinds.append(named.task.kind)
    if step.loop is not None and isinstance(step.loop.over, Cursor):
        kinds.append(step.loop.over.kind)
    return kinds
