"""A part of what a task gives, passed on while the task goes on."""

import msgspec

from noetl.domain.events.values import Result
from noetl.kernel.ids import CommandId, ExecutionId


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Told of before the next part is made."""

    task: str
    run: int = 1
    index: int
    has_more: bool
    result: Result


class ChunkTold(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of a command says of a chunk."""

    execution_id: ExecutionId
    command_id: CommandId
    claim: int
    chunk: Chunk
