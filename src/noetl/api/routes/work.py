"""The work desk over HTTP: the messages of the port, as JSON."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from noetl.api.route import Asked, Nothing, post
from noetl.domain.chunk import ChunkTold
from noetl.domain.naming.placement import check_same_placement, check_same_store
from noetl.domain.work import (
    ChildRequest,
    CommandReport,
    FrameReport,
    FrameStart,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    WorkerIdentity,
)
from noetl.domain.work_messages import (
    Acknowledged,
    CallRecord,
    ChildAnswer,
    ChildNamed,
    ChildWait,
    Claim,
    Claimed,
)
from noetl.kernel.ids import ExecutionId, StageId

LOOK_SECONDS = 1.0

_B = TypeVar("_B")
_T = TypeVar("_T")


async def register(asked: Asked[WorkerIdentity, Nothing]) -> Acknowledged:
    _check_worker(asked, asked.body)
    await asked.services.desk.register(asked.body)
    return Acknowledged()


async def claim(asked: Asked[Claim, Nothing]) -> Claimed:
    """Waits for work, but not for the sake of a worker that has hung up."""
    body = asked.body
    desk = asked.services.desk
    _check_worker(asked, body.worker)  # the server may have started anew since
    work = await _patiently(
        asked, body.wait_seconds, lambda wait: desk.claim(body.worker, body.free_slots, wait)
    )
    return Claimed(work=tuple(work))


def _check_worker(asked: Asked[Any, Nothing], worker: WorkerIdentity) -> None:
    if worker.placement is not None:
        check_same_placement(asked.services.placement, worker.placement)
    own = asked.services.cells.find(asked.services.placement.cell).store
    if own is not None and worker.store is not None:
        check_same_store(own, worker.store)
    if asked.grant is not None:
        serves = worker.serves
        of = ("", "") if serves is None else (serves.execution_id, serves.stage_id)
        asked.check_grant(ExecutionId(of[0]), StageId(of[1]))


async def _patiently(
    asked: Asked[_B, Nothing], wait_seconds: float, ask: Callable[[float], Awaitable[_T]]
) -> _T:
    """Asks again and again, so that a caller who went away is noticed, and a server can stop."""
    left = wait_seconds
    while True:
        answer = await ask(min(left, LOOK_SECONDS))
        left -= LOOK_SECONDS
        if answer or left <= 0 or asked.services.following.is_closed or await asked.is_gone():
            return answer


async def heartbeat(asked: Asked[Heartbeat, Nothing]) -> LeaseAnswer:
    asked.check_grant(asked.body.execution_id, asked.body.stage_id or StageId(""))
    return await asked.services.desk.heartbeat(asked.body)


async def call(asked: Asked[CallRecord, Nothing]) -> LeaseAnswer:
    body = asked.body
    asked.check_grant(body.execution_id, StageId(""))  # commands are not for slots
    return await asked.services.desk.record_call(
        body.execution_id, body.command_id, body.claim, body.call
    )


async def chunk(asked: Asked[ChunkTold, Nothing]) -> LeaseAnswer:
    asked.check_grant(asked.body.execution_id, StageId(""))  # commands are not for slots
    return await asked.services.desk.record_chunk(asked.body)


async def frame_started(asked: Asked[FrameStart, Nothing]) -> LeaseAnswer:
    asked.check_grant(asked.body.execution_id, asked.body.stage_id)
    return await asked.services.desk.frame_started(asked.body)


async def report(asked: Asked[Report, Nothing]) -> Reported:
    stage = asked.body.stage_id if isinstance(asked.body, FrameReport) else StageId("")
    asked.check_grant(asked.body.execution_id, stage)
    return await asked.services.desk.report(asked.body)


async def child(asked: Asked[ChildRequest, Nothing]) -> ChildNamed:
    asked.check_grant(asked.body.execution_id, asked.body.stage_id or StageId(""))
    return ChildNamed(execution_id=await asked.services.desk.start_child(asked.body))


async def await_child(asked: Asked[ChildWait, Nothing]) -> ChildAnswer:
    desk = asked.services.desk
    outcome = await _patiently(
        asked,
        asked.body.wait_seconds,
        lambda wait: desk.await_child(asked.execution, wait_seconds=wait),
    )
    return ChildAnswer(outcome=outcome)


async def deregister(asked: Asked[WorkerIdentity, Nothing]) -> Acknowledged:
    _check_worker(asked, asked.body)
    await asked.services.desk.deregister(asked.body)
    return Acknowledged()


ROUTES = (
    post(
        "/api/work/register",
        "A worker begins",
        register,
        body=WorkerIdentity,
        gives=Acknowledged,
    ),
    post("/api/work/claim", "Ask for work", claim, body=Claim, gives=Claimed),
    post("/api/work/heartbeat", "Keep a lease", heartbeat, body=Heartbeat, gives=LeaseAnswer),
    post("/api/work/calls", "Record a finished call", call, body=CallRecord, gives=LeaseAnswer),
    post("/api/work/chunks", "Pass a chunk on", chunk, body=ChunkTold, gives=LeaseAnswer),
    post(
        "/api/work/frames/started",
        "Rows that a frame has claimed",
        frame_started,
        body=FrameStart,
        gives=LeaseAnswer,
    ),
    post(
        "/api/work/report",
        "Bring back what became of work",
        report,
        body=CommandReport | FrameReport,
        gives=Reported,
    ),
    post("/api/work/children", "Ask for a child", child, body=ChildRequest, gives=ChildNamed),
    post(
        "/api/work/children/{execution_id}/await",
        "Wait for a child's end",
        await_child,
        body=ChildWait,
        gives=ChildAnswer,
    ),
    post(
        "/api/work/deregister",
        "A worker has drained",
        deregister,
        body=WorkerIdentity,
        gives=Acknowledged,
    ),
)
