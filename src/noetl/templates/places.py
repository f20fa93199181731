"""Which names are visible where in a playbook.

The engine's own names (`ctx`, `iter`, `output`, …) hide everything else; then come what the
playbook wrote, its steps and its workload; merely handy names (`path`, …) give way to all of them.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from noetl.domain.work import RunFacts
from noetl.kernel.ids import ExecutionId
from noetl.templates.bindings import Bindings, Late, Names
from noetl.templates.layered import (
    Outcome,
    ResultsByName,
    by_name,
    output_of_envelope,
    output_of_result,
    step_result,
)

OUTPUTS: Final = ("output", "outcome")
"""What the end of a task or step is called where it is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is fixed when an execution is accepted."""

    execution_id: ExecutionId
    job_uuid: str = ""
    catalog_id: str | None = None
    path: str = ""
    version: str | int | None = None
    parent_execution_id: ExecutionId | None = None
    payload: Names = field(default_factory=dict)  # what the request brought
    env: Names = field(default_factory=dict)  # allowed names only, recorded at the start
    roots: Names = field(default_factory=dict)  # further maps at the root of the playbook


def run_of(facts: RunFacts, exposed: Names) -> Run:
    """The run as templates see it; `exposed` are the further maps at the playbook's root."""
    return Run(
        execution_id=facts.execution_id,
        job_uuid=facts.job_uuid,
        catalog_id=facts.catalog_id,
        path=facts.path,
        version=facts.version,
        parent_execution_id=facts.parent_execution_id,
        payload=facts.payload,
        env=facts.env,
        roots=exposed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What an execution knows at some point. `workload` stays as it was accepted."""

    run: Run
    workload: Names = field(default_factory=dict)
    ctx: Names = field(default_factory=dict)  # what `set` wrote
    steps: Names = field(default_factory=dict)  # results, plain or PipelineResult or Reference
    before: str | None = None  # the step that leads here, when only one does
    keychain: Names = field(default_factory=dict)  # fields are Secrets


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a loop."""

    iterator: str
    item: Any
    index: int  # from 0
    total: int | None = None  # a cursor does not know
    writes: Names = {}  # what `set: iter.x` wrote


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are worked on together."""

    index: int
    base_index: int = 0  # of its first row
    rows: Any = None  # a list, or a reference to one
    row_count: int = 0
    policy: Names = {}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a pipeline that is about to be rendered."""

    name: str
    attempt: int = 1
    done: Names = {}  # results of earlier tasks, in order
    previous: Outcome | None = None
    succeeded: Any = None  # the result of the last task that did
    bare: Names = {}  # what task-level `set` wrote
    input: Names = {}  # rendered: template names for the tool's own fields


def for_workload(run: Run) -> Bindings:
    """The workload's own defaults, rendered once when the execution is accepted."""
    return Bindings(own=(_fixed(run),), handy=(_handy(run),))


def for_step(known: Known) -> Bindings:
    """Everything outside a pipeline: `input`, `loop`, tool fields, and below what others add."""
    own = {
        **_fixed(known.run),
        "ctx": {**known.workload, **known.ctx},
        "workload": known.workload,
        "keychain": known.keychain,
        "steps": by_name(known.steps),
    }
    layers = (known.ctx, ResultsByName(known.steps), known.workload)
    return Bindings(own=(own,), layers=layers, handy=(_handy(known.run) | _step_before(known),))


def for_iteration(bindings: Bindings, row: Iteration) -> Bindings:
    return _for_row(bindings, row, {}, {})


def _for_row(bindings: Bindings, row: Iteration, places: Names, handy: Names) -> Bindings:
    is_last = None if row.total is None else row.index == row.total - 1
    flags = {"_index": row.index, "_first": row.index == 0, "_last": is_last, "_total": row.total}
    loop = {"index": row.index, "first": row.index == 0, "last": is_last, "length": row.total}
    own = {
        **flags,
        "iter": {**flags, row.iterator: row.item, **row.writes},
        "loop": {**loop, "done": False},
        **places,
    }
    visible = bindings.add(own, ({row.iterator: row.item},), {"loop_index": row.index, **handy})
    return visible.at("row", row.index)


def for_frame_row(bindings: Bindings, frame: Frame, row: Iteration) -> Bindings:
    """A row inside a frame: `process: row`. The other rows are not its business."""
    places = {"_frame_index": frame.index, "_frame_row_index": row.index - frame.base_index}
    return _for_row(bindings, row, places, {"frame": _about(frame)})


def for_frame(bindings: Bindings, frame: Frame, iterator: str) -> Bindings:
    """A whole frame at once: `process: frame`."""
    rows = {iterator: frame.rows, f"{iterator}_rows": frame.rows}
    places = {"_frame_index": frame.index}
    own = {**places, "iter": {**rows, **places}, "frame": {**_about(frame), "rows": frame.rows}}
    return bindings.over(rows).define(own).at("frame", frame.index)


def _about(frame: Frame) -> dict[str, Any]:
    return {
        "row_count": frame.row_count,
        "index": frame.index,
        "base_index": frame.base_index,
        "policy": frame.policy,
    }


def for_claim(bindings: Bindings, policy: Names, worker_slot_id: str) -> Bindings:
    """The SQL with which a cursor claims its rows."""
    return bindings.define(
        {
            "__frame_max_rows": policy.get("max_rows", 1),
            "__frame_policy": policy,
            "__worker_slot_id": worker_slot_id,
        }
    )


def for_task(bindings: Bindings, task: Task) -> Bindings:
    """The fields of a task, rendered when its turn comes and not before."""
    own: dict[str, Any] = {"_attempt": task.attempt, "_task": task.name}
    if task.previous is not None:
        own["output"] = own["outcome"] = Late(output_of_result, task.previous)
        own["_prev"] = Late(step_result, task.succeeded)
    handy: dict[str, Any] = {"results": Late(by_name, task.done)}
    layers: tuple[Names, ...] = (ResultsByName(task.done),) if task.done else ()
    if task.bare:
        layers = (task.bare, *layers)
    if task.input:
        layers = (task.input, *layers)
        handy["input"] = handy["args"] = task.input
    return bindings.add(own, layers, handy).at("task", task.name, task.attempt)


def for_rule(bindings: Bindings, outcome: Outcome) -> Bindings:
    """`when` and `set` of a policy rule: how the task ended comes before what it gave."""
    output = Late(output_of_envelope, outcome)
    return bindings.add(_outputs(output), (), _results(output))


def for_set(bindings: Bindings, outcome: Outcome) -> Bindings:
    """`set` of a task or a step."""
    output = Late(output_of_result, outcome)
    return bindings.add(_outputs(output), (), _results(output))


def for_arc(bindings: Bindings, outcome: Outcome, event: Names) -> Bindings:
    """`when` and `set` of an arc. `event` has name, step, payload and timestamp."""
    return for_set(bindings, outcome).define({"event": event})


def for_loop_done(bindings: Bindings, outcome: Outcome, event: Names, length: int) -> Bindings:
    """The arcs of a loop, once all its rows are done."""
    return for_arc(bindings, outcome, event).define({"loop": {"done": True, "length": length}})


def _outputs(output: Any) -> dict[str, Any]:
    return dict.fromkeys(OUTPUTS, output)


def _results(result: Any) -> dict[str, Any]:
    """The result of the step or task that ended, and before one did, of the step before."""
    return {"result": result, "response": result}


def _step_before(known: Known) -> dict[str, Any]:
    if known.before is None or known.before not in known.steps:
        return {}
    return _results(step_result(known.steps[known.before]))


def _fixed(run: Run) -> dict[str, Any]:
    job = {"uuid": run.job_uuid, "execution_id": run.execution_id, "id": run.execution_id}
    return {"execution_id": run.execution_id, "job": job}


def _handy(run: Run) -> dict[str, Any]:
    return {
        **run.roots,
        "catalog_id": run.catalog_id,
        "env": run.env,
        "input": run.payload,
        "parent_execution_id": run.parent_execution_id,
        "path": run.path,
        "payload": run.payload,
        "version": run.version,
    }
