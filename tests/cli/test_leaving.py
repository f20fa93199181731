"""The first Ctrl-C cancels, the second leaves at once, and time that is over leaves too."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import cast

from noetl.cli.following import Silence, until_over
from noetl.cli.runs import Runs
from noetl.kernel.errors import LogUnavailable, StateRefuses
from noetl.kernel.ids import ExecutionId

ID = ExecutionId("1")


class Stubborn:
    """An execution that ends when it is told to, and a cancel that does as it is told."""

    is_server = False

    def __init__(self, cancel: Callable[["Stubborn"], Awaitable[None]]) -> None:
        self.ended = asyncio.Event()
        self.asked = asyncio.Event()
        self.reasons: list[str | None] = []
        self.left: list[str] = []
        self._cancel = cancel

    async def until_over(self, _execution: ExecutionId) -> None:
        await self.ended.wait()

    def hurry(self) -> None:
        self.left.append("in a hurry")

    async def leave(self, _execution: ExecutionId) -> bool:
        self.left.append("left")
        return self.ended.is_set()

    async def cancel(self, _execution: ExecutionId, reason: str | None) -> None:
        self.reasons.append(reason)
        self.asked.set()
        await self._cancel(self)


class Heard(Silence):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


async def never(_runs: Stubborn) -> None:
    await asyncio.Event().wait()


async def at_once(runs: Stubborn) -> None:
    runs.ended.set()


async def too_late(runs: Stubborn) -> None:
    runs.ended.set()
    raise StateRefuses(ID, "is completed and cannot be cancelled")


async def unreachable(runs: Stubborn) -> None:
    runs.ended.set()
    raise LogUnavailable("the server does not answer")


async def interrupted(
    runs: Stubborn, times: int, seconds: float | None = None
) -> tuple[bool, Heard]:
    heard = Heard()
    waiting = asyncio.create_task(until_over(cast(Runs, runs), ID, heard, seconds))
    await asyncio.sleep(0)
    for number in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        if number == 0:
            await runs.asked.wait()
    return await waiting, heard


async def test_one_interrupt_cancels_and_waits_for_the_end() -> None:
    runs = Stubborn(at_once)
    is_over, heard = await interrupted(runs, 1)
    assert is_over
    assert runs.left == []
    assert runs.reasons == ["Ctrl-C"]
    assert heard.lines == ["cancelling; Ctrl-C again leaves at once"]


async def test_a_second_interrupt_leaves_at_once() -> None:
    runs = Stubborn(never)
    is_over, _ = await interrupted(runs, 2)
    assert not is_over
    assert runs.reasons == ["Ctrl-C"]
    assert runs.left == ["in a hurry", "left"]


async def test_a_request_to_terminate_leaves_and_cancels_nothing() -> None:
    runs = Stubborn(never)
    waiting = asyncio.create_task(until_over(cast(Runs, runs), ID, Heard(), None))
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert not await waiting
    assert (runs.reasons, runs.left) == ([], ["left"])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_what_ends_while_it_is_left_has_ended() -> None:
    runs = Stubborn(never)
    runs.ended.set()
    waiting = asyncio.create_task(until_over(cast(Runs, runs), ID, Heard(), 0.0))
    assert await waiting


async def test_an_execution_that_ended_meanwhile_is_no_error() -> None:
    is_over, heard = await interrupted(Stubborn(too_late), 1)
    assert is_over
    assert len(heard.lines) == 1


async def test_a_cancel_that_could_not_be_done_is_told() -> None:
    _, heard = await interrupted(Stubborn(unreachable), 1)
    assert heard.lines[1:] == ["log_unavailable: the server does not answer"]


async def test_time_that_is_over_leaves() -> None:
    assert not (await interrupted(Stubborn(never), 0, 0.0))[0]


async def test_the_interrupt_is_python_s_own_again_afterwards() -> None:
    await interrupted(Stubborn(at_once), 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
