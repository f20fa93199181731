"""Stages that share an engine which is full: a later one gets a slot, and gives it back."""

import pytest

from noetl.domain.work import heartbeat_of
from noetl.kernel.errors import StageOver
from noetl.runtime.slot_turns import AGAIN_SECONDS, WAIT_SECONDS
from noetl.testing.desk_words import ended
from tests.unit.runtime.engine_scene import ASKED, SLOTS, Stage

MANY = ASKED.replace("range(4)", "range(400)")


class Engine:
    """It has two places, and the stage that comes first has taken both."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.desk = self.stage.scene.desk
        self.clock = self.stage.scene.clock

    async def fill(self) -> None:
        await self.stage.start(MANY)
        self.first = [self.stage.slot(order_number=0, number=number) for number in range(2)]
        self.works = [(await self.stage.scene.claim(1, slot))[0] for slot in self.first]

    async def pass_time(self, seconds: float) -> None:
        """Slots that work say so."""
        await self.clock.advance(seconds)
        self.actions = [
            (await self.desk.heartbeat(heartbeat_of(work, slot.worker_id))).next_action
            for work, slot in zip(self.works, self.first, strict=True)
        ]
        await self.stage.settle()


@pytest.fixture
async def engine() -> Engine:
    engine = Engine()
    await engine.fill()
    return engine


async def test_a_stage_whose_first_slot_does_not_come_gets_one_of_another(engine: Engine) -> None:
    await engine.stage.start(MANY)
    await engine.pass_time(WAIT_SECONDS - 0.1)
    assert engine.actions == ["continue", "continue"]
    await engine.pass_time(0.1)
    assert engine.actions == ["wait", "continue"]

    leaving, staying = engine.first
    await engine.stage.scene.report(ended(engine.works[0], leaving))
    with pytest.raises(StageOver):
        await engine.desk.claim(leaving, 1, 0)
    await engine.desk.deregister(leaving)
    assert await engine.stage.claim(engine.stage.slot(order_number=1)) == [50]
    report = await engine.stage.scene.report(ended(engine.works[1], staying))
    assert len(report.next_work) == 1


async def test_stages_that_all_have_slots_disturb_nobody(engine: Engine) -> None:
    await engine.stage.start(MANY)
    await engine.desk.register(engine.stage.slot(order_number=1))
    await engine.pass_time(WAIT_SECONDS + AGAIN_SECONDS)
    assert engine.actions == ["continue", "continue"]


async def test_a_stage_that_waits_on_is_given_one_more(engine: Engine) -> None:
    await engine.stage.start(MANY)
    await engine.pass_time(WAIT_SECONDS)
    await engine.pass_time(AGAIN_SECONDS)
    assert engine.actions == ["wait", "wait"]


async def test_further_slots_of_a_stage_that_has_some_make_room_at_once(engine: Engine) -> None:
    await engine.stage.start(MANY)
    await engine.pass_time(WAIT_SECONDS)
    with pytest.raises(StageOver):
        await engine.desk.register(engine.stage.slot(order_number=0, number=2))
    await engine.desk.register(engine.stage.slot(order_number=1))
    await engine.desk.register(engine.stage.slot(order_number=0, number=2))


async def test_a_stage_that_nobody_wants_any_more_takes_no_place(engine: Engine) -> None:
    execution = await engine.stage.start(MANY)
    await engine.stage.scene.cancel(execution)
    engine.stage.source.end(1)
    await engine.stage.settle()
    await engine.pass_time(WAIT_SECONDS)
    assert engine.actions == ["continue", "continue"]


@pytest.mark.parametrize("has_come", [True, False])
async def test_a_stage_that_gave_way_asks_for_all_its_slots_when_there_is_room_again(
    engine: Engine, has_come: bool
) -> None:
    execution = await engine.stage.start(MANY)
    await engine.pass_time(WAIT_SECONDS)
    if has_come:
        await engine.desk.register(engine.stage.slot(order_number=1))
    await engine.stage.scene.cancel(execution)
    engine.stage.source.end(1)
    await engine.stage.settle()
    await engine.pass_time(0)
    assert engine.actions == ["wait", "wait"]

    engine.stage.source.end(0)
    await engine.stage.settle()
    assert [order.slots for order in engine.stage.source.orders] == [SLOTS] * 3
    assert engine.stage.source.orders[2].stage_id == engine.stage.source.orders[0].stage_id


async def test_a_stage_whose_further_slots_made_room_asks_for_them_again_too(
    engine: Engine,
) -> None:
    await engine.stage.start(MANY)
    poor = engine.stage.slot(order_number=1)
    (work,) = await engine.stage.scene.claim(1, poor)
    execution = await engine.stage.start(MANY)
    await engine.pass_time(WAIT_SECONDS)
    with pytest.raises(StageOver):
        await engine.desk.register(engine.stage.slot(order_number=1, number=1))
    await engine.desk.register(engine.stage.slot(order_number=2))
    await engine.stage.scene.cancel(execution)
    engine.stage.source.end(2)
    await engine.stage.settle()

    answer = await engine.desk.heartbeat(heartbeat_of(work, poor.worker_id))
    assert answer.next_action == "wait"
    engine.stage.source.end(1)
    await engine.stage.settle()
    assert engine.stage.source.orders[3].stage_id == engine.stage.source.orders[1].stage_id
