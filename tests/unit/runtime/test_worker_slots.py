"""Slots go to whoever waits longest; work that goes on comes before new work."""

import asyncio

from noetl.runtime.worker_slots import Place, Slots
from tests.unit.runtime.worker_clock import settle


async def test_whoever_has_waited_longest_is_next() -> None:
    slots = Slots(1)
    first, second, third = Place(slots), Place(slots), Place(slots)
    order: list[str] = []

    async def take(name: str, place: Place) -> None:
        await place.come_back()
        order.append(name)
        place.leave()

    await asyncio.gather(take("third", third), take("second", second), take("first", first))

    assert order == ["first", "second", "third"]
    assert slots.free == 1


async def test_work_that_comes_back_is_before_work_that_has_not_begun() -> None:
    slots = Slots(1)
    parked = Place(slots)
    parked.leave()
    running, waiting = Place(slots), Place(slots)
    coming_back = asyncio.create_task(parked.come_back())
    begun = asyncio.create_task(waiting.come_back())
    await settle()

    running.leave()
    await settle()

    assert coming_back.done()
    assert not begun.done()
    begun.cancel()


async def test_somebody_who_stopped_waiting_gets_no_slot() -> None:
    slots = Slots(1)
    running, gone, next_one = Place(slots), Place(slots), Place(slots)
    leaving = asyncio.create_task(gone.come_back())
    await settle()
    leaving.cancel()
    await settle()

    running.leave()

    await next_one.come_back()
    gone.leave()
    assert slots.free == 0


async def test_a_slot_that_came_while_its_owner_was_cancelled_is_given_back() -> None:
    slots = Slots(1)
    running, late = Place(slots), Place(slots)
    waiting = asyncio.create_task(late.come_back())
    await settle()
    running.leave()  # the slot is late's now, but it is told to stop before it hears of that
    waiting.cancel()
    await settle()
    late.leave()

    assert slots.free == 1


async def test_leaving_twice_gives_back_one_slot() -> None:
    slots = Slots(2)
    place = Place(slots)
    place.leave()
    place.leave()

    assert slots.free == 2


async def test_whoever_looks_for_a_free_slot_hears_of_one_that_is_still_free() -> None:
    slots = Slots(1)
    place = Place(slots)
    looking = asyncio.create_task(slots.until_free())
    await settle()
    place.leave()
    other = Place(slots)
    await settle()
    assert not looking.done()

    other.leave()
    await settle()
    assert looking.done()
