"""Time limits that share a timer: each call has its own end, and nobody else's."""

import asyncio

import pytest

from noetl.tools.deadlines import Deadlines

LONG = 1_000.0
SHORT = 0.01


@pytest.fixture
async def deadlines() -> Deadlines:
    return Deadlines()


async def waiting(deadlines: Deadlines, seconds: float | None, until: "asyncio.Event") -> str:
    try:
        with deadlines.within(seconds):
            await until.wait()
    except TimeoutError:
        return "too late"
    return "in time"


async def test_who_waits_too_long_is_told_so(deadlines: Deadlines) -> None:
    assert await waiting(deadlines, SHORT, asyncio.Event()) == "too late"


async def test_a_limit_that_has_passed_ends_the_first_await(deadlines: Deadlines) -> None:
    assert await waiting(deadlines, 0.0, asyncio.Event()) == "too late"
    assert await waiting(deadlines, -1.0, asyncio.Event()) == "too late"


async def test_all_of_one_length_end_although_they_share_a_timer(deadlines: Deadlines) -> None:
    never = asyncio.Event()
    first = [asyncio.ensure_future(waiting(deadlines, SHORT, never)) for _ in range(3)]
    assert await asyncio.gather(*first) == ["too late"] * 3
    assert await waiting(deadlines, SHORT, never) == "too late"


async def test_who_comes_later_is_not_ended_with_who_came_first(deadlines: Deadlines) -> None:
    """The timer that ends the first finds the second, which has more time."""
    never, now = asyncio.Event(), asyncio.Event()
    first = asyncio.ensure_future(waiting(deadlines, SHORT, never))
    second = asyncio.ensure_future(waiting(deadlines, LONG, now))
    assert await first == "too late"
    assert not second.done()
    now.set()
    assert await second == "in time"


async def test_who_is_done_before_is_left_alone_by_the_timer(deadlines: Deadlines) -> None:
    done = asyncio.Event()
    done.set()
    assert await waiting(deadlines, SHORT, done) == "in time"
    assert await waiting(deadlines, SHORT, asyncio.Event()) == "too late"  # the timer has fired
    assert await waiting(deadlines, None, done) == "in time"


async def test_who_is_cancelled_is_cancelled(deadlines: Deadlines) -> None:
    """Also when the time is over as well: whoever cancelled it waits for that."""
    for seconds in (LONG, SHORT):
        task = asyncio.ensure_future(waiting(deadlines, seconds, asyncio.Event()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_an_inner_limit_ends_before_an_outer_one(deadlines: Deadlines) -> None:
    with deadlines.within(LONG):
        assert await waiting(deadlines, SHORT, asyncio.Event()) == "too late"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_limits_of_many_lengths_are_not_kept_for_ever(deadlines: Deadlines) -> None:
    for number in range(deadlines.LINES_MAX * 3):
        deadlines.within(LONG + number)
    assert len(deadlines._lines) <= deadlines.LINES_MAX + 1
    deadlines.close()
