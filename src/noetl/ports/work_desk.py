"""Where workers get work and bring back what became of it: in this process, or over HTTP."""

from typing import Protocol

from noetl.domain.chunk import ChunkTold
from noetl.domain.work import (
    Call,
    ChildOutcome,
    ChildRequest,
    FrameStart,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    Work,
    WorkerIdentity,
)
from noetl.kernel.ids import CommandId, ExecutionId


class ChildDesk(Protocol):
    """Where a pipeline asks for sub-playbooks."""

    async def start_child(self, request: ChildRequest) -> ExecutionId: ...

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        """The child's end, or None when it has not come within `wait_seconds`."""
        ...


class WorkDesk(ChildDesk, Protocol):
    """Promises (each has a test of the same number):

    W1  work is held by one worker at a time: a second holder has a higher claim, and what the
        first one says from then on is ClaimLost
    W2  a report is recorded before it is acknowledged; sent again it changes nothing
    W3  a lease that is not kept alive is handed out again, up to `attempts_max`, then fails
    W4  a worker that registers under a new boot loses the leases of its earlier one at once
    W5  asking for a child twice for one cycle gives the same child
    W6  after `stop` nothing of that work is recorded any more
    W7  rows that a cursor's frame has claimed are recorded, under numbers that no other row of the
        loop has, before `frame_started` is acknowledged; said again it changes nothing, and
        whoever holds the frame next is given the same rows
    W8  chunks of a task are recorded in order and once each, before they are acknowledged,
        whoever tells of them how often
    """

    async def register(self, worker: WorkerIdentity) -> None: ...

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        """Up to `free_slots` pieces of work; waits for the first one, then gives up empty."""
        ...

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        """Keeps the lease alive. Raises ClaimLost."""
        ...

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        """Journal one finished cycle before the pipeline goes on to its next effect."""
        ...

    async def record_chunk(self, told: ChunkTold) -> LeaseAnswer:
        """Before the next one is made. Raises ClaimLost."""
        ...

    async def frame_started(self, start: FrameStart) -> LeaseAnswer:
        """Before a claim of rows is committed. Raises ClaimLost: then it must not be."""
        ...

    async def report(self, report: Report) -> Reported:
        """The end of a piece of work. Raises ClaimLost."""
        ...

    async def deregister(self, worker: WorkerIdentity) -> None:
        """The worker has drained and holds nothing any more."""
        ...
