"""The desk over HTTP keeps the promises of the desk in the process."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from noetl.client.connection import Connection
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.events.values import Result
from noetl.domain.work import (
    Call,
    ChildRequest,
    CommandReport,
    CommandWork,
    Heartbeat,
    WorkerIdentity,
)
from noetl.kernel.errors import ClaimLost, EntryNotFound, ExecutionNotFound, LogUnavailable
from noetl.kernel.ids import CommandId, ExecutionId, WorkerId
from noetl.ports.work_desk import WorkDesk
from tests.api.running import HELLO, WAITING, Api

ANNA = WorkerIdentity(worker_id=WorkerId("anna"), boot_id="1", slots=2, labels={"zone": "a"})
DONE = Result(status="ok", context={"value": 1})


@pytest.fixture
async def desk(idle_api: Api) -> AsyncIterator[HttpWorkDesk]:
    connection = Connection(idle_api.address, idle_api.internal_key)
    yield HttpWorkDesk(connection)
    await connection.close()


async def claimed(desk: WorkDesk, worker: WorkerIdentity = ANNA) -> CommandWork:
    (work,) = await desk.claim(worker, 1, 10)
    assert isinstance(work, CommandWork)
    return work


def report_of(work: CommandWork, claim: int | None = None) -> CommandReport:
    return CommandReport(
        execution_id=work.execution_id,
        command_id=work.command_id,
        claim=claim or work.claim,
        worker_id=ANNA.worker_id,
        result=DONE,
    )


def beat_of(work: CommandWork, claim: int | None = None) -> Heartbeat:
    return Heartbeat(
        execution_id=work.execution_id,
        worker_id=ANNA.worker_id,
        claim=claim or work.claim,
        command_id=work.command_id,
    )


async def test_work_is_claimed_kept_recorded_and_reported(
    idle_api: Api, desk: HttpWorkDesk
) -> None:
    await desk.register(ANNA)
    execution = await idle_api.start()

    work = await claimed(desk)
    beat = await desk.heartbeat(beat_of(work))
    call = Call(task="start", result=DONE, effect="fired")
    noted = await desk.record_call(work.execution_id, work.command_id, work.claim, call)
    reported = await desk.report(report_of(work))
    workers = await idle_api.get("/api/workers")

    assert (work.execution_id, work.step, work.facts.workload["who"]) == (execution, "start", "you")
    assert beat.next_action == noted.next_action == "continue"
    assert [next_work.step for next_work in reported.next_work] == ["second"]
    assert [(each["worker_id"], each["labels"]) for each in workers["workers"]] == [
        ("anna", {"zone": "a"})
    ]


async def test_a_claim_waits_for_work_and_gives_up_empty(idle_api: Api, desk: HttpWorkDesk) -> None:
    assert await desk.claim(ANNA, 1, 0.01) == []

    waiting = asyncio.create_task(claimed(desk))
    execution = await idle_api.start()

    assert (await waiting).execution_id == execution


async def test_w1_what_an_earlier_holder_says_is_claim_lost(
    idle_api: Api, desk: HttpWorkDesk
) -> None:
    await idle_api.start()
    work = await claimed(desk)
    for wrong in (desk.heartbeat(beat_of(work, 7)), desk.report(report_of(work, 7))):
        with pytest.raises(ClaimLost, match="nothing was recorded"):
            await wrong


async def test_w2_a_report_sent_again_changes_nothing(idle_api: Api, desk: HttpWorkDesk) -> None:
    execution = await idle_api.start()
    work = await claimed(desk)
    await desk.report(report_of(work))
    before = (await idle_api.get(f"/api/executions/{execution}"))["event_count"]

    again = await desk.report(report_of(work))

    assert again.duplicate
    assert (await idle_api.get(f"/api/executions/{execution}"))["event_count"] == before


async def test_w4_a_new_boot_gets_the_work_of_the_one_before(
    idle_api: Api, desk: HttpWorkDesk
) -> None:
    await idle_api.start()
    first = await claimed(desk)
    reborn = WorkerIdentity(worker_id=ANNA.worker_id, boot_id="2", slots=2)
    await desk.register(reborn)

    second = await claimed(desk, reborn)

    assert (second.command_id, second.claim) == (first.command_id, first.claim + 1)
    with pytest.raises(ClaimLost):
        await desk.report(report_of(first))


async def test_w5_a_child_asked_for_twice_is_one_child(idle_api: Api, desk: HttpWorkDesk) -> None:
    await idle_api.post("/api/catalog/register", content=HELLO)
    await idle_api.start(WAITING)
    work = await claimed(desk)
    request = ChildRequest(
        execution_id=work.execution_id,
        command_id=work.command_id,
        cycle=f"{work.execution_id}/start/1/0/start/1",
        path="tests/hello",
    )

    child = await desk.start_child(request)

    assert await desk.start_child(request) == child
    assert await desk.await_child(child, wait_seconds=0.01) is None
    await idle_api.post(f"/api/executions/{child}/cancel")
    outcome = await desk.await_child(child, wait_seconds=600)
    assert outcome is not None
    assert outcome.status == "CANCELLED"


async def test_what_is_not_there_is_not_found(idle_api: Api, desk: HttpWorkDesk) -> None:
    await idle_api.start(WAITING)
    work = await claimed(desk)
    with pytest.raises(EntryNotFound):
        await desk.start_child(
            ChildRequest(execution_id=work.execution_id, cycle="x/y/1/0/z/1", path="tests/none")
        )
    with pytest.raises(ExecutionNotFound):
        await desk.await_child(ExecutionId("1"), wait_seconds=1)
    with pytest.raises(ExecutionNotFound):
        await desk.record_call(ExecutionId("1"), CommandId("c"), 1, Call(task="t"))


async def test_a_worker_that_signs_off_is_gone(idle_api: Api, desk: HttpWorkDesk) -> None:
    await desk.register(ANNA)
    await desk.deregister(ANNA)
    assert (await idle_api.get("/api/workers"))["workers"] == []


async def test_trouble_with_the_line_may_pass() -> None:
    connection = Connection("http://127.0.0.1:1")
    with pytest.raises(LogUnavailable) as caught:
        await HttpWorkDesk(connection).register(ANNA)
    assert caught.value.retryable
    await connection.close()
