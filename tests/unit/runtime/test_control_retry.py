"""A person's retry: what was recorded is adopted, and what ended may end again."""

import msgspec
import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import Call, CommandWork
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.templates.recorded import inline_result
from noetl.testing.desk_words import CHAIN, claim_of, failed, worker
from tests.unit.runtime.desk_scene import WORKER, Scene

BROKEN = Failure(kind="client_error", message="no such order")


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_retry_of_a_step_is_the_same_visit_and_adopts_what_was_recorded(
    scene: Scene,
) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    paid = Call(task="pay", result=inline_result({"receipt": 5}), effect="fired", duration_ms=1)
    refused = Call(task="ship", error=BROKEN, effect="fired")
    report = msgspec.structs.replace(failed(work, WORKER, BROKEN), calls=(paid, refused))
    await scene.report(report)
    assert await scene.status(execution) == "FAILED"
    scene.rebuild()

    await scene.control.retry(DEFAULT_SCOPE, execution)
    again = await scene.claim_one()

    assert isinstance(again, CommandWork)
    assert (again.visit, again.command_id) == (1, f"{execution}/first/1/0/2")
    assert again.journal == (paid,)
    await scene.finish(again)
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_retried_execution_ends_again(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.report(failed(await scene.claim_one(), WORKER, BROKEN))
    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.status == "FAILED"

    await scene.control.retry(DEFAULT_SCOPE, execution)
    assert await scene.coordinator.ending(execution, 0) is None
    assert await scene.run_to_the_end(execution) == "COMPLETED"

    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.status == "COMPLETED"


async def test_work_of_a_retried_execution_is_looked_after(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.report(failed(await scene.claim_one(), WORKER, BROKEN))
    await scene.control.retry(DEFAULT_SCOPE, execution)
    await scene.claim_one()

    await scene.pass_time(2 * scene.lease_seconds)

    assert claim_of(await scene.claim_one(worker("next"))) == 2


async def test_a_cancelled_execution_can_be_retried_where_it_was(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.claim_one()
    await scene.cancel(execution)

    await scene.control.retry(DEFAULT_SCOPE, execution)
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_retry_may_begin_anywhere(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.run_to_the_end(execution)

    await scene.control.retry(DEFAULT_SCOPE, execution, step=StepName("second"))

    (work,) = await scene.claim()
    assert (work.step, work.visit) == ("second", 2)
    await scene.finish(work)
    assert await scene.status(execution) == "COMPLETED"
