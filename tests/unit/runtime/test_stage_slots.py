"""Rows that are for an engine wait for its slots, and for nobody when these cannot be had."""

import asyncio

import pytest

from noetl.domain.events.loop import LoopMode
from noetl.domain.execution.state import LoopWork
from noetl.domain.work import heartbeat_of
from noetl.kernel.errors import SparkDriverLost, SparkStartFailed
from noetl.kernel.ids import ExecutionId, LoopId, StageId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.control import Control, cancel_tree
from noetl.runtime.slot_orders import frames_per_slot, slots_for
from noetl.runtime.slots_draining import drain_slots
from noetl.runtime.stage_slots import (
    CANCEL_GRACE_SECONDS,
    CLOSE_GRACE_SECONDS,
    LOST_MAX,
    PAUSE_SECONDS,
)
from noetl.testing.desk_words import ended, said_to
from tests.unit.runtime.engine_scene import ASKED, CHOSEN, CURSOR, SLOTS, Stage
from tests.unit.runtime.worker_clock import settle


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_rows_of_a_loop_that_asks_for_an_engine_wait_for_its_slots(stage: Stage) -> None:
    await stage.start(ASKED)
    assert await stage.claim() == []
    assert await stage.claim(stage.slot()) == [4]


async def test_they_wait_for_them_after_a_pause_too(stage: Stage) -> None:
    execution = await stage.start(ASKED)
    control = Control(stage.scene.coordinator)
    await control.pause(DEFAULT_SCOPE, execution)
    stage.source.end(-1)
    await stage.settle()
    assert await stage.claim() == [], "a local worker is there, and free"
    await control.resume(DEFAULT_SCOPE, execution)
    await stage.settle()
    assert len(stage.source.orders) == 2
    assert await stage.claim() == []
    assert await stage.claim(stage.slot(boot=1)) == [4]


async def test_they_wait_for_them_too_when_the_pause_ends_as_the_slots_are_let_go(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = await stage.start(ASKED)
    control, find = Control(stage.scene.coordinator), stage.slots._find

    async def resumed_a_moment_later(execution: ExecutionId, stage_id: StageId) -> object:
        found = await find(execution, stage_id)
        if found is None:
            await control.resume(DEFAULT_SCOPE, execution)
            await settle()
        return found

    monkeypatch.setattr(stage.slots, "_find", resumed_a_moment_later)
    await control.pause(DEFAULT_SCOPE, execution)
    stage.source.end(-1)
    await stage.settle()
    await settle()
    await stage.settle()
    assert len(stage.source.orders) == 2
    assert await stage.claim() == []
    assert await stage.claim(stage.slot(boot=1)) == [4]


@pytest.mark.parametrize(
    ("kind", "rows", "in_flight"),
    [("noop", 16, 16 * SLOTS), ("python, code: x = 1", 1, SLOTS)],
)
async def test_every_slot_has_a_frame_and_as_many_rows_as_it_is_good_for(
    stage: Stage, kind: str, rows: int, in_flight: int
) -> None:
    execution = await stage.start(ASKED.replace("noop", kind))
    running = await stage.scene.coordinator.load(execution)
    (work,) = running.state.loop_work.values()
    assert work.policy["engine"] == "spark"
    assert work.policy["row_concurrency"] == rows
    assert work.policy["max_in_flight"] == in_flight


@pytest.mark.parametrize(("said", "slots"), [("", SLOTS), (", max_in_flight: 3", 3)])
@pytest.mark.parametrize(("text", "mode"), [(CHOSEN, "fanout"), (CURSOR, "cursor")])
async def test_a_stage_has_the_slots_of_its_engine_unless_its_author_wants_fewer(
    stage: Stage, text: str, mode: str, said: str, slots: int
) -> None:
    many = text.replace("range(4)", "range(40)")
    await stage.start(many.replace(f"mode: {mode}", f"mode: {mode}{said}"))
    assert stage.source.orders[-1].slots == slots


async def test_the_setting_asks_for_all_loops() -> None:
    stage = Stage("spark")
    await stage.start(CHOSEN)
    assert await stage.claim() == []


async def test_rows_that_are_for_whoever_comes_first_go_to_local_workers(stage: Stage) -> None:
    await stage.start(CHOSEN)
    assert len(stage.source.orders) == 1
    assert await stage.claim() == [1]


async def test_an_engine_that_cannot_be_had_leaves_its_rows_to_local_workers(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.source.fails = SparkStartFailed("no memory")
    await stage.start(ASKED)
    assert await stage.claim() == [4]
    assert "local workers go on with the stage" in caplog.text
    assert "Spark did not start: no memory" in caplog.text


async def test_rows_wait_again_when_slots_were_lost(stage: Stage) -> None:
    await stage.start(ASKED)
    await stage.claim(stage.slot())
    stage.source.lose(SparkDriverLost("ended"))
    await stage.settle()
    assert await stage.claim() == []
    await stage.scene.clock.advance(PAUSE_SECONDS)
    await stage.settle()
    assert await stage.claim() == []
    assert await stage.claim(stage.slot(1_000)) == [4]


async def test_an_engine_whose_slots_are_lost_again_and_again_is_waited_for_no_more(
    stage: Stage,
) -> None:
    await stage.start(ASKED)
    for times in range(1, LOST_MAX + 1):
        assert await stage.claim() == []
        stage.source.lose(SparkDriverLost("ended"))
        await stage.settle()
        await stage.scene.clock.advance(PAUSE_SECONDS * times)
        await stage.settle()
    assert len(stage.source.orders) == LOST_MAX
    assert await stage.claim() == [4]


async def test_an_engine_is_warmed_up_when_a_playbook_begins_that_will_need_it(
    stage: Stage,
) -> None:
    await stage.start(ASKED)
    assert stage.source.warmed == 1
    await stage.start(CHOSEN.replace("fanout", "parallel"))
    assert stage.source.warmed == 1


async def test_a_task_that_is_tried_again_is_the_next_attempt_of_its_frame(stage: Stage) -> None:
    execution = await stage.start(ASKED)
    await stage.claim(stage.slot(2_000))
    await stage.scene.desk.register(stage.slot(2_001))
    await stage.claim(stage.slot(2_001))
    told = await stage.scene.of(execution, "frame.dispatched")
    assert [(each.attempt, each.incarnation) for each in told] == [(1, 2_000), (2, 2_001)]


@pytest.mark.parametrize(
    ("policy", "mode", "slots", "frames"),
    [
        ({"max_in_flight": 2, "row_concurrency": 1}, "parallel", 2, 1),
        ({"max_in_flight": 64, "row_concurrency": 16}, "parallel", 4, 1),
        ({"max_in_flight": 128, "row_concurrency": 16}, "parallel", 4, 2),
        ({"max_in_flight": 6, "row_concurrency": 16}, "cursor", 4, 1),
        ({"max_in_flight": 12}, "fanout", 4, 3),
        ({"max_in_flight": 1}, "cursor", 1, 1),
    ],
)
def test_slots_together_have_all_the_frames_that_may_be_out(
    policy: dict[str, int], mode: LoopMode, slots: int, frames: int
) -> None:
    work = LoopWork(loop_id=LoopId("a@1"), step=StepName("a"), visit=1, mode=mode, total=9_000)
    work.policy = dict(policy)
    assert (slots_for(work, 4), frames_per_slot(work, 4)) == (slots, frames)


@pytest.mark.parametrize(("rows", "slots"), [(1, 1), (3, 3), (4, 4), (100, 4)])
def test_few_rows_ask_for_few_slots(rows: int, slots: int) -> None:
    work = LoopWork(loop_id=LoopId("a@1"), step=StepName("a"), visit=1, mode="parallel", total=rows)
    work.stage_id, work.policy = StageId("1"), {"max_in_flight": 4, "row_concurrency": 1}
    assert (slots_for(work, 4), frames_per_slot(work, 4)) == (slots, 1)


@pytest.mark.parametrize(("has_left", "withdrawn"), [(True, []), (False, ["t"])])
async def test_the_job_of_a_closed_stage_is_stopped_only_when_its_slots_do_not_leave(
    stage: Stage, has_left: bool, withdrawn: list[str]
) -> None:
    await stage.start(ASKED)
    (work,) = await stage.scene.claim(1, stage.slot())
    await stage.scene.report(ended(work, stage.slot()))
    if has_left:
        await stage.scene.desk.deregister(stage.slot())
    await stage.scene.clock.advance(CANCEL_GRACE_SECONDS)
    assert stage.source.withdrawn == withdrawn
    await stage.scene.clock.advance(CLOSE_GRACE_SECONDS)
    assert set(stage.source.withdrawn) == {"t"}


@pytest.mark.parametrize("has_come", [True, False])
async def test_the_job_of_a_cancelled_stage_is_stopped_also_when_its_slots_are_yet_to_come(
    stage: Stage, has_come: bool
) -> None:
    execution = await stage.start(ASKED)
    if has_come:
        await stage.scene.desk.register(stage.slot())
    await stage.scene.cancel(execution)
    await stage.scene.clock.advance(CANCEL_GRACE_SECONDS - 0.1)
    assert stage.source.withdrawn == []
    await stage.scene.clock.advance(0.1)
    assert stage.source.withdrawn == ["t"]


async def test_the_job_of_a_cancelled_stage_that_ended_by_itself_is_left_alone(
    stage: Stage,
) -> None:
    execution = await stage.start(ASKED)
    await stage.scene.cancel(execution)
    stage.source.end(-1)
    await stage.scene.clock.advance(CANCEL_GRACE_SECONDS + CLOSE_GRACE_SECONDS)
    assert stage.source.withdrawn == []


async def test_slots_of_a_process_that_stops_are_told_to_end_with_the_rows_that_run(
    stage: Stage,
) -> None:
    execution = await stage.start(ASKED)
    (work,) = await stage.scene.claim(1, stage.slot())
    slot = stage.slot()
    stage.scene.coordinator.seats.is_closed = True
    draining = asyncio.create_task(drain_slots(stage.scene.coordinator, lambda: 10.0))
    await stage.scene.clock.advance(1)

    answer = await stage.scene.desk.heartbeat(heartbeat_of(work, slot.worker_id))
    await stage.scene.report(ended(work, slot, "done"))
    await stage.scene.clock.advance(1)
    await asyncio.wait_for(draining, 5)

    assert answer.next_action == "wait"
    assert await stage.scene.of(execution, "frame.abandoned") == []


async def test_what_slots_of_a_process_that_stops_have_not_ended_is_handed_back(
    stage: Stage,
) -> None:
    execution = await stage.start(ASKED)
    (work,) = await stage.scene.claim(1, stage.slot())
    stage.scene.coordinator.seats.is_closed = True
    draining = asyncio.create_task(drain_slots(stage.scene.coordinator, lambda: 10.0))
    await stage.scene.clock.advance(11)
    await asyncio.wait_for(draining, 5)

    (back,) = await stage.scene.of(execution, "frame.abandoned")
    assert back.handed_back
    assert await said_to(stage.scene.report(ended(work, stage.slot()))) == "lost"


async def test_no_job_is_started_for_a_stage_that_was_cancelled_while_its_engine_came_up(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.source.is_up.clear()
    execution = await stage.start(ASKED)
    await cancel_tree(stage.scene.coordinator, execution, "not needed")
    stage.source.is_up.set()
    await stage.settle()

    assert len(stage.source.orders) == 1
    assert stage.source.jobs == 0
    assert await stage.scene.of(execution, "stage.engine") == []
    assert caplog.text == ""
