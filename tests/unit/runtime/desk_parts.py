"""Parts of a desk that most tests of workers do not look at: children and chunks."""

from noetl.domain.chunk import Chunk, ChunkTold
from noetl.domain.work import ChildOutcome, ChildRequest, LeaseAnswer
from noetl.kernel.ids import ExecutionId


class DeskParts:
    def __init__(self) -> None:
        self.answer = LeaseAnswer(next_action="continue")
        self.chunks: list[Chunk] = []

    async def record_chunk(self, told: ChunkTold) -> LeaseAnswer:
        self._tell("record_chunk")
        self.chunks.append(told.chunk)
        return self.answer

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        raise AssertionError("no pipeline here has children")

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        raise AssertionError("no pipeline here has children")

    def _tell(self, method: str) -> None:
        raise AssertionError(f"nobody hears of {method}")
