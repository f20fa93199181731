"""A chunk that a worker tells of, turned into a fact."""

from noetl.domain.chunk import ChunkTold
from noetl.domain.events import CallPartial
from noetl.domain.execution.chunks import standing
from noetl.domain.work import LeaseAnswer
from noetl.kernel.errors import RequestInvalid
from noetl.runtime.reports import held_command, next_action
from noetl.runtime.turn import Turn, about_command


def chunk_told(turn: Turn, told: ChunkTold) -> LeaseAnswer:
    """One that is known changes nothing: whoever runs a task again tells of all its chunks."""
    row, chunk = held_command(turn, told.command_id, told.claim), told.chunk
    chunks = turn.state.chunks.get(row.step)
    known = None if chunks is None or chunks.visit != row.visit else chunks
    place = standing(known, chunk.task, chunk.run, chunk.index)
    if place == "early":
        raise RequestInvalid(
            f"chunk {chunk.index} of {chunk.task} came before the one that precedes it;"
            " tell of chunks in order"
        )
    if place == "next":
        event = CallPartial(
            step=row.step,
            chunk_index=chunk.index,
            has_more=chunk.has_more,
            result=chunk.result,
            visit=row.visit,
            task=chunk.task,
            run=chunk.run,
        )
        turn.add(about_command(event, told.command_id))
    return LeaseAnswer(next_action=next_action(turn), lease_until=row.lease_until)
