"""The work desk over HTTP: the same promises, the same errors."""

from urllib.parse import quote

from noetl.client.connection import Connection
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
from noetl.domain.work_messages import (
    CLAIM_SECONDS_MAX,
    Acknowledged,
    CallRecord,
    ChildAnswer,
    ChildNamed,
    ChildWait,
    Claim,
    Claimed,
)
from noetl.kernel.ids import CommandId, ExecutionId


class HttpWorkDesk:
    """Whoever asks keeps asking: a question that waits longer than a proxy would is cut short."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def register(self, worker: WorkerIdentity) -> None:
        await self._connection.post("/api/work/register", worker, Acknowledged)

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        wait = min(wait_seconds, CLAIM_SECONDS_MAX)
        claim = Claim(worker=worker, free_slots=free_slots, wait_seconds=wait)
        claimed = await self._connection.post("/api/work/claim", claim, Claimed, wait)
        return list(claimed.work)

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        return await self._connection.post("/api/work/heartbeat", beat, LeaseAnswer)

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        record = CallRecord(execution_id=execution, command_id=command, claim=claim, call=call)
        return await self._connection.post("/api/work/calls", record, LeaseAnswer)

    async def record_chunk(self, told: ChunkTold) -> LeaseAnswer:
        return await self._connection.post("/api/work/chunks", told, LeaseAnswer)

    async def frame_started(self, start: FrameStart) -> LeaseAnswer:
        return await self._connection.post("/api/work/frames/started", start, LeaseAnswer)

    async def report(self, report: Report) -> Reported:
        return await self._connection.post("/api/work/report", report, Reported)

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        named = await self._connection.post("/api/work/children", request, ChildNamed)
        return named.execution_id

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        wait = min(wait_seconds, CLAIM_SECONDS_MAX)
        path = f"/api/work/children/{quote(child, safe='')}/await"
        body = ChildWait(wait_seconds=wait)
        return (await self._connection.post(path, body, ChildAnswer, wait)).outcome

    async def deregister(self, worker: WorkerIdentity) -> None:
        await self._connection.post("/api/work/deregister", worker, Acknowledged)
