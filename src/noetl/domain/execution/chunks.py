"""How chunks of a growing result change the state: they wait, and are passed on in order."""

from typing import Literal

from noetl.domain.chunk import Chunk
from noetl.domain.events import CallPartial, ChunkPassed
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.state import ChunkCount, Chunks, ExecutionState
from noetl.domain.execution.tokens import put_tokens
from noetl.kernel.ids import StepName

Standing = Literal["known", "next", "early"]


def arrived(fold: Accumulator, event: CallPartial) -> None:
    """One that is known already, or that has none before it, changes nothing."""
    state, task = fold.state, event.task or ""
    chunks = state.chunks.get(event.step)
    if chunks is None or chunks.visit < event.visit:
        chunks = state.chunks[event.step] = Chunks(visit=event.visit)
    if standing(chunks, task, event.run, event.chunk_index) != "next":
        return
    chunks.counts[task] = ChunkCount(event.run, event.chunk_index + 1)
    chunks.waiting.append(
        Chunk(
            task=task,
            run=event.run,
            index=event.chunk_index,
            has_more=event.has_more,
            result=event.result,
        )
    )


def standing(chunks: Chunks | None, task: str, run: int, index: int) -> Standing:
    """Whether it is known, the next one, or ahead of others that are missing."""
    counted = None if chunks is None else chunks.counts.get(task)
    if counted is not None and counted.run > run:
        return "known"
    count = counted.count if counted is not None and counted.run == run else 0
    if index == count:
        return "next"
    return "known" if index < count else "early"


def passed(fold: Accumulator, event: ChunkPassed, _envelope: Envelope) -> None:
    """From now on the step's name means this chunk."""
    state = fold.state
    chunks = state.chunks.get(event.step)
    if chunks is None or not chunks.waiting or _is_other(chunks.waiting[0], event):
        fold.unmatched()
        return
    chunk = chunks.waiting.pop(0)
    state.execution.last_node_name = event.step
    state.results = {**state.results, event.step: chunk.result}
    state.ctx = all_assigned(state.ctx, event.writes)
    put_tokens(state, event.step, event.arcs)


def given_back(state: ExecutionState, step: StepName) -> None:
    """The step is over: chunks that were not passed on are unknown to whoever tries it again."""
    chunks = state.chunks.get(step)
    if chunks is None:
        return
    for chunk in reversed(chunks.waiting):
        chunks.counts[chunk.task] = ChunkCount(chunk.run, chunk.index)
    chunks.waiting.clear()


def _is_other(chunk: Chunk, event: ChunkPassed) -> bool:
    told = (event.task or "", event.run, event.chunk_index)
    return (chunk.task, chunk.run, chunk.index) != told


FOLDS: dict[type, FoldFunction] = {ChunkPassed: passed}
