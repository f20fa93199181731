"""The names that a playbook gives to its templates, wherever in it they are given."""

from collections.abc import Iterable, Iterator

import msgspec

from noetl.domain.playbook.model import Playbook, Step
from noetl.domain.playbook.task import Task
from noetl.domain.playbook.values import Assignment
from noetl.dsl.language.names import ENGINE_NAMES, ROW_NAMES


class Provided(msgspec.Struct, frozen=True, kw_only=True):
    """What may be there, whichever place asks for it: a name that is in none of these is a mistake.

    Where a name is visible is not looked at: a warning that is wrong does more harm than none.
    """

    own: frozenset[str]  # given by the playbook itself
    bare: frozenset[str]  # those, and the engine's
    before_input: frozenset[str]  # without the input of tasks, which is not there for itself
    parts: dict[str, frozenset[str]]  # of `workload`, `ctx`, `iter`, `steps` and `keychain`
    has_loops: bool


def provided_by(playbook: Playbook) -> Provided:
    tasks = list(_tasks(playbook))
    written = frozenset(
        assignment.name.partition(".")[0] for assignment in _assignments(playbook, tasks)
    )
    rows = frozenset(_row_names(playbook.steps.values()))
    steps = frozenset({*playbook.steps, *playbook.aliases})
    workload = frozenset(playbook.workload)
    named = (rows, written, playbook.exposed, (task.name for task in tasks))
    of_steps = (step.input for step in playbook.steps.values())
    elsewhere = workload.union(steps, *named, *of_steps)
    own = elsewhere.union(*(task.input for task in tasks))
    return Provided(
        own=own,
        bare=own | ENGINE_NAMES,
        before_input=elsewhere | ENGINE_NAMES,
        parts={
            "workload": workload,
            "ctx": workload | written,
            "iter": rows | written | ROW_NAMES,
            "steps": steps,
            "keychain": frozenset(entry.name for entry in playbook.keychain),
        },
        has_loops=bool(rows),
    )


def _tasks(playbook: Playbook) -> Iterator[Task]:
    for step in playbook.steps.values():
        yield from step.tasks
    for named in playbook.workbook.values():
        yield named.task


def _assignments(playbook: Playbook, tasks: Iterable[Task]) -> Iterator[Assignment]:
    for step in playbook.steps.values():
        yield from step.set
        for arc in step.next.arcs:
            yield from arc.set
    for task in tasks:
        yield from task.set
        for rule in task.policy.rules:
            yield from rule.set


def _row_names(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        if step.loop is not None:
            yield step.loop.iterator
            yield f"{step.loop.iterator}_rows"
