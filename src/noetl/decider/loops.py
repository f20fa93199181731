"""How a loop begins and ends: its items, its policy, and what its rows came to."""

from typing import Any

import msgspec

from noetl.decider.answers import AssembleFirst, Decided, Incomplete, StoreFirst
from noetl.decider.evaluate import evaluated, evaluated_or_table
from noetl.decider.fanout import (
    FANIN,
    fanin_completed,
    fanin_names,
    fanout_error,
    keys_of,
)
from noetl.decider.missing import check_is_given
from noetl.decider.stage_policy import NEEDS_A_ROW, policy_of
from noetl.decider.view import Closing, StoredCollection, View
from noetl.domain.events import (
    FanoutStarted,
    LoopDone,
    LoopStarted,
    StageClosed,
    StageOpened,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.stage import StageKind
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import LoopWork
from noetl.domain.execution.windows import in_order
from noetl.domain.playbook.loop import Collection, Loop
from noetl.domain.playbook.model import Step
from noetl.kernel.errors import InvariantBroken
from noetl.kernel.ids import StepName, loop_id
from noetl.templates.compiled import names_in
from noetl.templates.errors import TemplateFailed
from noetl.templates.recorded import INLINE_BYTES_MAX, LOOP, inline_result
from noetl.templates.table_rows import TableRows

COLLECTION_BYTES_MAX = 65_536


def opened(view: View, step: Step, visit: int, attempt: int = 1) -> list[Decided]:
    """The first events of a loop. Raises TemplateError, or Incomplete."""
    loop = step.loop
    if loop is None:
        raise InvariantBroken(f"step {step.name!r} is no loop")
    before = view.state.kept_loops.get(step.name)
    if before is not None and attempt > 1:
        return _opened_again(view, before, attempt)
    if not isinstance(loop.over, Collection):
        return _opened_cursor(view, step, loop, without_items(step, visit, attempt))
    name = loop_id(step.name, visit, attempt)
    bindings = view.bindings(step.name)
    stored = view.collections.get(name)
    items: list[Any] | None = None
    if stored is None:
        given = evaluated_or_table(loop.over.value, bindings)
        stored = _as_stored(given)
        items = as_items(given) if stored is None else None
        if given is None:
            check_is_given(loop.over.value, bindings)
        if items is not None and len(msgspec.json.encode(items)) > COLLECTION_BYTES_MAX:
            raise Incomplete(StoreFirst(name, items))
    started = LoopStarted(
        loop_id=name,
        step=step.name,
        mode=loop.mode,
        visit=visit,
        collection_size=stored.size if stored is not None else len(items or ()),
        collection=items,
        collection_ref=None if stored is None else stored.reference,
        attempt=attempt,
    )
    size = started.collection_size or 0
    policy = policy_of(view, step, loop, bindings, size)
    if loop.mode == "fanout" and loop.fanout.key is not None:
        items = as_items(evaluated(loop.over.value, bindings)) if items is None else items
        policy["iter_keys"] = keys_of(loop, items, bindings)
    return _beginning(view, started, policy)


def _opened_cursor(view: View, step: Step, loop: Loop, started: LoopStarted) -> list[Decided]:
    """How many rows there are, and which, its frames will find out."""
    policy = policy_of(view, step, loop, view.bindings(step.name), 0)
    return _beginning(view, started, policy)


def _opened_again(view: View, before: LoopWork, attempt: int) -> list[Decided]:
    """A person's retry: the same rows under the same names, whatever `in:` would give by now."""
    started = LoopStarted(
        loop_id=loop_id(before.step, before.visit, attempt),
        step=before.step,
        mode=before.mode,
        visit=before.visit,
        collection_size=None if before.mode == "cursor" else before.total,
        collection=before.collection,
        collection_ref=before.collection_ref,
        attempt=attempt,
    )
    return _beginning(view, started, before.policy)


def _beginning(view: View, started: LoopStarted, policy: dict[str, Any]) -> list[Decided]:
    decided = [Decided(event=started)]
    if started.mode == "fanout":
        fanout = FanoutStarted(
            loop_id=started.loop_id,
            step=started.step,
            total_shards=started.collection_size or 0,
            visit=started.visit,
        )
        decided.append(Decided(event=fanout))
    opened = StageOpened(
        stage_kind=_kind(view, started, policy),
        step=started.step,
        visit=started.visit,
        loop_id=started.loop_id,
        parent_stage_id=view.state.run.parent_stage_id,
        dsl_ref=view.plan.reference(started.step),
        frame_policy=policy,
    )
    return [*decided, Decided(event=opened, loop_id=started.loop_id)]


def _kind(view: View, started: LoopStarted, policy: dict[str, Any]) -> StageKind:
    """A loop that takes the rows of another one by the frame, and not one by one, is a reduce."""
    if started.mode == "fanout":
        return "fanout"
    steps = view.plan.playbook.steps
    loop = steps[started.step].loop
    if policy.get("process") != "frame" or loop is None or not isinstance(loop.over, Collection):
        return "loop"
    value = loop.over.value
    names = names_in(value) if isinstance(value, str) else ()
    loops = (steps[StepName(name)].loop for name in names if name in steps)
    return "reduce" if any(each is not None for each in loops) else "loop"


def without_items(step: Step, visit: int, attempt: int) -> LoopStarted:
    """A loop whose items could not be found: it begins, so that its end has a beginning."""
    return LoopStarted(
        loop_id=loop_id(step.name, visit, attempt),
        step=step.name,
        mode="sequential" if step.loop is None else step.loop.mode,
        visit=visit,
        attempt=attempt,
    )


def _as_stored(value: Any) -> StoredCollection | None:
    """A table that an earlier step stored: its frames read their rows where they lie."""
    if not isinstance(value, TableRows) or value.reference is None:
        return None
    return StoredCollection(value.reference, len(value))


def as_items(value: Any) -> list[Any]:
    """A list as it is; one thing is a list of one; nothing is no items."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, (dict, str)):
        return [value]
    raise TemplateFailed(
        f"`loop.in` gives {value!r}, which has no items; use a list, or a template that gives one"
    )


def is_drained(work: LoopWork) -> bool:
    """Nothing is out, and nothing more will be handed out."""
    if work.out or work.stage_id is None:
        return False
    return is_halted(work) or not (work.returned or work.unfinished or _has_more(work))


def _has_more(work: LoopWork) -> bool:
    return may_claim(work) if work.mode == "cursor" else work.next_index < work.total


def may_claim(work: LoopWork) -> bool:
    """Whether a claim might still find rows, and the author lets it look."""
    return not work.cursor.is_dry and not _is_spent(work)


def _is_spent(work: LoopWork) -> bool:
    frames_max = work.policy.get("max_iterations")
    return frames_max is not None and work.next_ordinal >= int(frames_max)


def is_halted(work: LoopWork) -> bool:
    """After the first failed row no new frame starts, unless the author said to go on."""
    if work.frame_error is not None:
        return True
    return work.row_error is not None and work.policy.get("failure") != "continue"


def closed(view: View, work: LoopWork) -> list[Decided]:
    closing = view.closings.get(work.loop_id) or _closing(work)
    error = error_of(work)
    done = LoopDone(
        loop_id=work.loop_id,
        step=work.step,
        status=_status(work, error),
        stats=stats_of(work),
        visit=work.visit,
        result=closing.result,
        error=error,
        writes=_writes(work),
    )
    stage = StageClosed(
        status="FAILED" if error is not None else "CLOSED", output_ref=closing.output_ref
    )
    ends = [Decided(event=done), Decided(event=stage, loop_id=work.loop_id)]
    row = view.state.loops.get(work.loop_id)
    if work.mode != "fanout" or row is None or row.fanin_status is not None:
        return ends
    return [Decided(event=fanin_completed(work), loop_id=work.loop_id), *ends]


def stats_of(work: LoopWork) -> LoopStats:
    worked = sum(output.window.rows for output in work.outputs)
    return LoopStats(
        total=work.total,
        succeeded=worked - work.rows_failed,
        failed=work.rows_failed,
        skipped=work.total - worked,
        broken=work.rows_broken,
    )


def loop_content(work: LoopWork, results: list[Any]) -> dict[str, Any]:
    stats = msgspec.to_builtins(stats_of(work))
    told = {"total": 0, "succeeded": 0, "failed": 0, "skipped": 0, "broken": 0, **stats}
    told["success"] = told["succeeded"]
    fanin = {FANIN: fanin_names(work)} if work.mode == "fanout" else {}
    return {LOOP: {"results": results, "stats": told, "count": work.total, **fanin}}


def _closing(work: LoopWork) -> Closing:
    """Small loops need nothing from the store: their rows' outcomes are in the events."""
    if any(output.output_ref is not None for output in work.outputs):
        raise Incomplete(AssembleFirst(work.loop_id))
    results = [row.get("value") for output in in_order(work) for row in output.outcomes]
    content = loop_content(work, results)
    if len(msgspec.json.encode(content)) > INLINE_BYTES_MAX:
        raise Incomplete(AssembleFirst(work.loop_id))
    result = inline_result(None)
    return Closing(msgspec.structs.replace(result, context=content))


def error_of(work: LoopWork) -> Failure | None:
    """Why the step fails, if its loop ends as it is now."""
    if work.frame_error is not None:
        return work.frame_error
    if work.mode == "fanout":
        return fanout_error(work)
    return work.row_error if is_halted(work) or _came_to_nothing(work) else None


def _came_to_nothing(work: LoopWork) -> bool:
    """Rows were claimed and every one of them failed."""
    worked = sum(output.window.rows for output in work.outputs)
    return bool(work.policy.get(NEEDS_A_ROW)) and 0 < worked == work.rows_failed


def _status(work: LoopWork, error: Failure | None) -> str:
    if error is not None:
        return "failed"
    is_cut = work.mode == "cursor" and not work.cursor.is_dry
    return "partial" if work.rows_failed or is_cut else "completed"


def _writes(work: LoopWork) -> dict[str, Any]:
    """Rows that ran side by side: the last by index wins, whenever it ran; of a cursor, the last
    to be committed."""
    if work.mode == "sequential":  # written as each frame committed
        return {}
    writes: dict[str, Any] = {}
    for output in in_order(work):
        for name, value in output.writes.items():
            writes.pop(name, None)  # a name that is written again comes last, as it does in time
            writes[name] = value
    return writes
