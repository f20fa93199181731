"""How chunks of a growing result go on: one at a time, and the step ends after the last.

A chunk is passed on when nothing moves any more that the one before it set in motion.
"""

from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.arrivals import may_still_arrive
from noetl.decider.evaluate import check_writes, evaluated, holds, targets_of
from noetl.decider.routing import exit_of
from noetl.decider.view import View
from noetl.domain.chunk import Chunk
from noetl.domain.events import ChunkPassed, StepExited
from noetl.domain.events.values import Failure
from noetl.domain.execution.names import assigned
from noetl.domain.execution.state import Chunks, StepState
from noetl.domain.playbook.model import PARTIAL, Arc, Step
from noetl.kernel.ids import StepName
from noetl.templates.bindings import Bindings
from noetl.templates.errors import TemplateError
from noetl.templates.layered import step_result
from noetl.templates.places import for_arc


def passed_on(view: View) -> list[Decided]:
    """One at a time: what its arcs set, the next one's must see. A chunk whose arcs cannot be
    judged stays where it is, and its step fails when its work is over."""
    if view.state.failed is not None:  # what runs may end; nothing new begins
        return []
    for name in view.state.open_steps:
        step, chunks = view.plan.playbook.steps.get(name), _chunks_of(view, name)
        if step is None or chunks is None or not chunks.waiting or _is_moving(view, step):
            continue
        try:
            return [Decided(event=_passed(view, step, chunks))]
        except TemplateError:
            continue
    return []


def ended(view: View, step: Step, state: StepState) -> Decided | None:
    """The exit of a step whose work is over; None while chunks of it are on their way."""
    chunks = _chunks_of(view, step.name)
    if chunks is None:
        return exit_of(view, step, state)
    failed = view.state.failed
    if failed is not None and (chunks.waiting or failed.step in _behind(view, step)):
        return _given_up(view, step, state, _left(chunks, failed.step))
    if failed is None and _is_moving(view, step):
        return None
    if not chunks.waiting:
        return exit_of(view, step, state)
    try:
        _passed(view, step, chunks)
    except TemplateError as error:
        failure = Failure(kind="template", message=f"step {step.name!r}: {error}")
        return _given_up(view, step, state, failure)
    return None


def _chunks_of(view: View, name: StepName) -> Chunks | None:
    """Of this visit; None when it has yielded nothing."""
    chunks, step = view.state.chunks.get(name), view.state.steps.get(name)
    is_of_visit = chunks is not None and step is not None and chunks.visit == step.visit
    return chunks if is_of_visit else None


def _passed(view: View, step: Step, chunks: Chunks) -> ChunkPassed:
    chunk = chunks.waiting[0]
    taken = _taken(step, _bindings(view, step, chunk, view.state.ctx))
    ctx, writes = view.state.ctx, dict[str, Any]()
    for arc in taken:
        for name, value in targets_of(arc.set):
            writes[name] = evaluated(value, _bindings(view, step, chunk, ctx))
            ctx = assigned(ctx, name, writes[name])
    check_writes(writes)
    steps = view.plan.playbook.steps
    return ChunkPassed(
        step=step.name,
        chunk_index=chunk.index,
        visit=chunks.visit,
        task=chunk.task,
        run=chunk.run,
        arcs=tuple(dict.fromkeys(arc.step for arc in taken if arc.step in steps)),
        writes=writes,
    )


def _taken(step: Step, bindings: Bindings) -> list[Arc]:
    taken: list[Arc] = []
    for arc in step.next.arcs:
        if arc.on == PARTIAL and holds(arc.when, bindings):
            taken.append(arc)
            if step.next.mode == "exclusive":
                break
    return taken


def _bindings(view: View, step: Step, chunk: Chunk, ctx: dict[str, Any]) -> Bindings:
    envelope = view.outcome(chunk.result, None)
    event = {
        "name": PARTIAL,
        "step": step.name,
        "payload": step_result(envelope.result),
        "status": envelope.status,
        "timestamp": view.state.now,
        "task": chunk.task,
        "chunk_index": chunk.index,
        "has_more": chunk.has_more,
    }
    return for_arc(view.bindings(step.name, ctx, chunk.result), envelope, event)


def _is_moving(view: View, step: Step) -> bool:
    """Whether anything behind the arcs for chunks runs, or is about to. What waits at a join for
    this very step is not."""
    behind, state = _behind(view, step), view.state
    return any(name in behind for name in state.open_steps) or any(
        name in behind and not may_still_arrive(view, name) for name in state.tokens
    )


def _behind(view: View, step: Step) -> frozenset[StepName]:
    """Every step that a chunk may lead to, but for its own."""
    steps = view.plan.playbook.steps
    found: set[StepName] = set()
    waiting = [arc.step for arc in step.next.arcs if arc.on == PARTIAL and arc.step in steps]
    while waiting:
        name = waiting.pop()
        if name not in found and name != step.name:
            found.add(name)
            waiting += [edge.target for edge in view.plan.graph.outgoing[name]]
    return frozenset(found)


def _left(chunks: Chunks, failed: StepName) -> Failure:
    count = len(chunks.waiting)
    waiting = f", and {count} chunks wait for it" if count else ""
    message = f"step {failed!r} failed over a chunk{waiting}; a retry goes on from there"
    return Failure(kind="unknown", message=message, code="chunks_left")


def _given_up(view: View, step: Step, state: StepState, failure: Failure) -> Decided:
    """Its name goes on to mean the chunk: the step that failed over it will want it again."""
    own = None if state.outcome is None else state.outcome.error
    return Decided(
        event=StepExited(
            step=step.name,
            status="FAILED",
            visit=state.visit,
            result=view.state.results.get(step.name),
            error=own or failure,
        )
    )
