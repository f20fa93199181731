"""The coordinator's desk besides its promises: who gets work, and who gets none any more."""

import asyncio

import msgspec
import pytest

from noetl.domain.events import BusinessObjectChanged
from noetl.kernel.errors import LogUnavailable
from noetl.kernel.ids import ExecutionId
from noetl.runtime.reports import FRAME_ATTEMPTS_MAX
from noetl.runtime.seat import AWAY_SECONDS
from noetl.testing.desk_words import (
    CHAIN,
    ROWS,
    child_of,
    claim_of,
    count,
    ended,
    name_of,
    said_to,
    worker,
)
from tests.unit.runtime.desk_scene import ATTEMPTS_MAX, LEASE_SECONDS, WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog
from tests.unit.runtime.worker_clock import settle

OTHER = worker("other")


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


async def test_a_report_brings_the_next_work(scene: Scene) -> None:
    await scene.start(CHAIN)
    work = await scene.claim_one()

    answer = await scene.desk.report(ended(work, WORKER))

    assert [next_work.step for next_work in answer.next_work] == ["second"]


async def test_a_report_that_comes_again_while_the_first_is_recorded_gets_its_answer(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.start(CHAIN)
    work = await scene.claim_one()
    log.hold()
    first, again = (asyncio.create_task(scene.desk.report(ended(work, WORKER))) for _ in range(2))
    await settle()
    log.let_go()

    assert not (await first).duplicate
    assert (await again).duplicate
    assert [next_work.step for next_work in (await again).next_work] == ["second"]


async def test_a_report_that_comes_again_is_recorded_when_the_first_could_not_be(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.start(CHAIN)
    work = await scene.claim_one()
    log.hold()
    log.failures = [LogUnavailable("away")]
    first, again = (asyncio.create_task(scene.desk.report(ended(work, WORKER))) for _ in range(2))
    await settle()
    log.let_go()

    with pytest.raises(LogUnavailable):
        await first
    assert [next_work.step for next_work in (await again).next_work] == ["second"]


async def test_a_report_that_could_not_be_recorded_frees_its_slot_once(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.start(ROWS, count=10)
    (work,) = await scene.claim(1)
    log.failures = [LogUnavailable("away")] * 3
    for _ in range(3):
        with pytest.raises(LogUnavailable):
            await scene.desk.report(ended(work, WORKER))

    answer = await scene.desk.report(ended(work, WORKER))

    assert len(answer.next_work) == 1


async def test_work_promised_in_a_turn_that_got_lost_is_handed_out_again(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.start(ROWS, count=4)
    log.failures = [LogUnavailable("away")]
    assert await scene.claim(4) == []

    await scene.reaper.look()
    await scene.coordinator.drain()

    assert len(await scene.claim(4)) == 4


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_mail_that_lay_for_a_while_is_renewed_before_it_is_given_out(
    scene: Scene, text: str
) -> None:
    await scene.desk.claim(WORKER, 1, 0)
    await scene.start(text, count=1)
    await scene.pass_time(0.5 * scene.lease_seconds)

    (work,) = await scene.desk.claim(WORKER, 1, 0)
    await scene.pass_time(0.89 * scene.lease_seconds)

    assert claim_of(work) == 1
    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"


async def test_mail_that_was_taken_back_is_not_given_out(scene: Scene) -> None:
    await scene.desk.claim(WORKER, 1, 0)
    await scene.start(CHAIN)
    await scene.pass_time(2 * scene.lease_seconds)

    assert await scene.claim(1) == []
    assert claim_of(await scene.claim_one()) == 2


async def test_a_worker_that_has_gone_gets_no_work(scene: Scene) -> None:
    """It had many free slots when it asked for the last time."""
    assert await scene.claim(100, OTHER) == []
    await scene.pass_time(2 * AWAY_SECONDS)

    await scene.start(ROWS, count=10)
    await scene.coordinator.drain()

    assert len(await scene.claim()) == 10


async def test_work_of_a_worker_that_signs_off_goes_to_others_at_once(scene: Scene) -> None:
    execution = await scene.start(ROWS, count=4)
    held = await scene.claim(2, OTHER)

    await scene.desk.deregister(OTHER)

    handed = await scene.claim()
    assert {name_of(work) for work in held} < {name_of(work) for work in handed}
    assert count(await scene.events(execution), "frame.abandoned") == 2


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_workers_that_sign_off_lose_nothing_however_often(scene: Scene, text: str) -> None:
    execution = await scene.start(text, count=1)
    for number in range(ATTEMPTS_MAX + FRAME_ATTEMPTS_MAX):
        leaving = worker(boot=f"{number}")
        (work,) = await scene.claim(1, leaving)
        assert claim_of(work) == number + 1
        await scene.desk.deregister(leaving)
        assert await said_to(scene.desk.report(ended(work, leaving))) == "lost"

    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_work_that_is_lost_after_it_was_handed_back_counts_from_there(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    for boot in range(ATTEMPTS_MAX):
        leaving = worker(boot=f"{boot}")
        await scene.claim(1, leaving)
        await scene.desk.deregister(leaving)
    for lost in range(ATTEMPTS_MAX):
        assert await scene.status(execution) == "RUNNING"
        await scene.claim(1, worker(f"lost {lost}"))
        await scene.pass_time(LEASE_SECONDS + 1)

    assert await scene.status(execution) == "FAILED"


async def test_nothing_is_handed_out_at_a_closed_desk(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    (work,) = await scene.claim(1)
    scene.coordinator.seats.is_closed = True

    answer = await scene.report(ended(work, WORKER))

    assert answer.next_work == ()
    assert await scene.claim() == []
    assert await scene.status(execution) == "RUNNING"


async def test_an_old_boot_that_signs_off_takes_nothing_from_the_new_one(scene: Scene) -> None:
    before, after = worker(boot="1"), worker(boot="2")
    await scene.desk.register(before)
    await scene.start(CHAIN)
    await scene.desk.register(after)
    work = await scene.claim_one(after)

    await scene.desk.deregister(before)

    assert await said_to(scene.desk.report(ended(work, after))) == "recorded"


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_what_an_old_boot_held_is_lost_although_nobody_else_has_it_yet(
    scene: Scene, text: str
) -> None:
    before, after = worker(boot="1"), worker(boot="2")
    await scene.start(text, count=1)
    (work,) = await scene.claim(1, before)

    await scene.desk.register(after)

    assert await said_to(scene.desk.report(ended(work, before))) == "lost"
    (again,) = await scene.claim(1, after)
    assert claim_of(again) == 2


async def test_a_new_boot_voids_frames_also_after_the_desk_was_restarted(scene: Scene) -> None:
    before, after = worker(boot="1"), worker(boot="2")
    execution = await scene.start(ROWS, count=1)
    (work,) = await scene.claim(1, before)
    scene.rebuild()
    await scene.coordinator.load(execution)

    await scene.desk.register(before)
    still_held = await scene.claim(1, before)
    await scene.desk.register(after)
    (again,) = await scene.claim(1, after)

    assert still_held == []
    assert (name_of(again), claim_of(again)) == (name_of(work), 2)


async def test_children_of_a_parent_that_is_cancelled_meanwhile_are_cancelled(
    scene: Scene, log: ObedientLog
) -> None:
    """The parent names its child, is cancelled, and only then the child begins."""
    parent = await scene.start(CHAIN)
    work = await scene.claim_one()
    heads = log.head

    async def cancel_first(execution: ExecutionId) -> object:
        """The first question about the child comes after it was named."""
        log.head = heads  # type: ignore[method-assign]
        await scene.cancel(parent)
        return await heads(execution)

    log.head = cancel_first  # type: ignore[method-assign,assignment]
    child = await scene.desk.start_child(child_of(work, "desk/chain"))

    assert await scene.status(parent) == "CANCELLED"
    assert await scene.status(child) == "CANCELLED"


async def test_a_claim_waits_for_work_and_hears_of_it(scene: Scene) -> None:
    claiming = asyncio.create_task(scene.desk.claim(WORKER, 1, 5))
    await settle()

    execution = await scene.start(CHAIN)

    (work,) = await claiming
    assert work.execution_id == execution


async def test_a_frame_says_how_its_many_objects_are_stored(scene: Scene) -> None:

    execution = await scene.start(ROWS, count=1)
    (work,) = await scene.claim(1)
    changes = tuple(BusinessObjectChanged(object="order", id=str(n)) for n in range(1_000))

    await scene.desk.report(msgspec.structs.replace(ended(work, WORKER), emitted=changes))

    (recorded,) = await scene.of(execution, "objects.recorded")
    assert recorded.count == 1_000
    assert (await scene.of(execution, "object.changed")) == []
