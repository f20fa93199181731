"""Work whose holder went quiet goes to others, and fails when that happens too often."""

import asyncio

import pytest

from noetl.domain.log import APPEND_EVENTS_MAX
from noetl.kernel.errors import LogUnavailable
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.reaper import INTERVAL_SECONDS
from noetl.testing.desk_words import CHAIN, ROWS, claim_of, count, ended, said_to, worker
from tests.unit.runtime.desk_scene import ATTEMPTS_MAX, LEASE_SECONDS, WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


async def test_nothing_is_taken_from_a_holder_whose_lease_runs(scene: Scene) -> None:
    await scene.start(CHAIN)
    work = await scene.claim_one()

    await scene.pass_time(0.99 * LEASE_SECONDS)

    assert await scene.reaper.look() == 0
    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"


async def test_a_command_lost_too_often_fails_with_the_reason(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    for number in range(ATTEMPTS_MAX):
        work = await scene.claim_one(worker(f"quiet-{number}"))
        assert claim_of(work) == number + 1
        await scene.pass_time(2 * LEASE_SECONDS)

    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.error is not None
    assert (ending.status, ending.error.kind) == ("FAILED", "lease_lost")
    assert "3 workers in turn took the command and went quiet" in ending.error.message


async def test_what_ended_is_never_handed_out_again(scene: Scene) -> None:
    execution = await scene.start(ROWS, count=2)
    for work in await scene.claim(2):
        await scene.finish(work)
    after = await scene.claim_one()
    await scene.finish(after)
    before = await scene.events(execution)

    await scene.pass_time(10 * LEASE_SECONDS)

    assert await scene.events(execution) == before


async def test_work_of_a_paused_execution_is_taken_back_and_waits(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.claim_one(worker("quiet"))
    await scene.control.pause(DEFAULT_SCOPE, execution)
    await scene.pass_time(2 * LEASE_SECONDS)
    assert await scene.claim() == []

    await scene.control.resume(DEFAULT_SCOPE, execution)

    assert claim_of(await scene.claim_one()) == 2


async def test_hundreds_of_lost_frames_are_taken_back_round_by_round(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(ROWS.replace("100,", "700,"), count=700)
    quiet = worker("quiet", slots=1_000)
    taken = await scene.claim(1_000, quiet)
    taken += await scene.claim(1_000 - len(taken), quiet)
    assert len(taken) == 700

    await scene.pass_time(2 * LEASE_SECONDS)
    while await scene.reaper.look():
        await scene.coordinator.drain()

    assert count(await scene.events(execution), "frame.abandoned") == 700
    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX


async def test_a_log_that_is_away_does_not_stop_the_rounds(scene: Scene, log: ObedientLog) -> None:
    execution = await scene.start(CHAIN)
    await scene.claim_one(worker("quiet"))
    await scene.clock.advance(2 * LEASE_SECONDS)
    rounds = asyncio.create_task(scene.reaper.run())
    await scene.clock.advance(0)
    log.failures = [LogUnavailable("away")] * 2

    claiming = asyncio.create_task(scene.desk.claim(WORKER, 1, 5))
    for _ in range(8):
        await scene.clock.advance(INTERVAL_SECONDS)

    (work,) = await claiming
    assert (work.execution_id, claim_of(work)) == (execution, 2)
    assert not rounds.done()
    rounds.cancel()
