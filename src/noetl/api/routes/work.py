"""The work desk over HTTP: the messages of the port, as JSON."""

from noetl.api.route import Asked, Nothing, post
from noetl.domain.work import (
    ChildRequest,
    CommandReport,
    FrameReport,
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


async def register(asked: Asked[WorkerIdentity, Nothing]) -> Acknowledged:
    await asked.services.desk.register(asked.body)
    return Acknowledged()


async def claim(asked: Asked[Claim, Nothing]) -> Claimed:
    """Waits for work; a worker that went away meanwhile loses it when the lease runs out."""
    body = asked.body
    work = await asked.services.desk.claim(body.worker, body.free_slots, body.wait_seconds)
    return Claimed(work=tuple(work))


async def heartbeat(asked: Asked[Heartbeat, Nothing]) -> LeaseAnswer:
    return await asked.services.desk.heartbeat(asked.body)


async def call(asked: Asked[CallRecord, Nothing]) -> LeaseAnswer:
    body = asked.body
    return await asked.services.desk.record_call(
        body.execution_id, body.command_id, body.claim, body.call
    )


async def report(asked: Asked[Report, Nothing]) -> Reported:
    return await asked.services.desk.report(asked.body)


async def child(asked: Asked[ChildRequest, Nothing]) -> ChildNamed:
    return ChildNamed(execution_id=await asked.services.desk.start_child(asked.body))


async def await_child(asked: Asked[ChildWait, Nothing]) -> ChildAnswer:
    outcome = await asked.services.desk.await_child(
        asked.execution, wait_seconds=asked.body.wait_seconds
    )
    return ChildAnswer(outcome=outcome)


async def deregister(asked: Asked[WorkerIdentity, Nothing]) -> Acknowledged:
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
