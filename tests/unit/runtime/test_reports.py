"""What workers say becomes facts; leases are renewed before anybody can doubt them."""

import msgspec
import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import Call, CommandReport
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.templates.recorded import inline_result
from noetl.testing.desk_words import CHAIN, ROWS, beat, count, ended, said_to
from tests.unit.runtime.desk_scene import LEASE_SECONDS, WORKER, Scene

PAID = Call(task="pay", result=inline_result({"receipt": 5}), effect="fired")
CODE = Call(task="code", result=inline_result(1))


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_a_lease_that_is_fresh_needs_no_event(scene: Scene, text: str) -> None:
    execution = await scene.start(text, count=1)
    work = await scene.claim_one()
    before = await scene.events(execution)

    await scene.pass_time(0.05 * LEASE_SECONDS)
    answer = await scene.desk.heartbeat(beat(work, WORKER))

    assert answer.lease_until == work.lease_until
    assert await scene.events(execution) == before


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_a_lease_is_renewed_before_its_holder_counts_on_more(scene: Scene, text: str) -> None:
    await scene.start(text, count=1)
    work = await scene.claim_one()

    await scene.pass_time(0.15 * LEASE_SECONDS)
    answer = await scene.desk.heartbeat(beat(work, WORKER))

    assert answer.lease_until is not None
    assert answer.lease_until > work.lease_until


async def test_a_frame_keeps_the_lease_that_its_loop_names(scene: Scene) -> None:
    """Its worker counts on that much after every heartbeat, not on the lease of commands."""
    text = ROWS.replace("max_rows: 1,", f"max_rows: 1, lease_seconds: {10 * LEASE_SECONDS},")
    await scene.start(text, count=1)
    work = await scene.claim_one()
    for _ in range(4):
        await scene.pass_time(3 * LEASE_SECONDS)
        await scene.desk.heartbeat(beat(work, WORKER))

    await scene.pass_time(8.9 * LEASE_SECONDS)

    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"


async def test_a_worker_is_told_to_wait_while_the_execution_is_paused(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    await scene.control.pause(DEFAULT_SCOPE, execution)

    answer = await scene.desk.heartbeat(beat(work, WORKER))

    assert answer.next_action == "wait"


async def test_a_call_that_was_recorded_is_not_recorded_with_the_report(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    report = msgspec.structs.replace(ended(work, WORKER), calls=(PAID, CODE))
    assert isinstance(report, CommandReport)
    await scene.desk.record_call(execution, report.command_id, 1, PAID)

    await scene.report(report)

    calls = await scene.of(execution, "call.done")
    assert [call.task for call in calls] == ["pay", "code"]
    assert calls[0].result == PAID.result


async def test_the_calls_of_a_failed_command_keep_their_results(scene: Scene) -> None:
    """A person may retry it: then they are adopted."""
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    error = Failure(kind="unknown", message="no")
    failing = Call(task="ship", error=error, effect="fired")
    await scene.report(
        msgspec.structs.replace(ended(work, WORKER), calls=(PAID, failing), error=error)
    )

    (paid,) = await scene.of(execution, "call.done")
    assert paid.result == PAID.result
    assert count(await scene.events(execution), "call.error") == 1


async def test_every_command_has_a_call(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.run_to_the_end(execution)

    assert [call.step for call in await scene.of(execution, "call.done")] == ["first", "second"]


async def test_a_frame_names_the_cycles_that_ran_again(scene: Scene) -> None:
    execution = await scene.start(ROWS, count=1)
    work = await scene.claim_one()
    cycle = f"{execution}/each/1/0/pay/1"

    await scene.report(msgspec.structs.replace(ended(work, WORKER), repeated=(cycle,)))

    (committed,) = await scene.of(execution, "frame.committed")
    assert committed.metrics["repeated"] == [cycle]
