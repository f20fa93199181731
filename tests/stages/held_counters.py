"""Targets that can be shut, can keep their callers waiting, and know which process called."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil
from aiohttp import web

from tests.crash.counters import COUNTING, HONOURING, Counters

Keys = Callable[[str], bool]

CHANGE_SECONDS_MAX = 60.0


def _everything(_key: str) -> bool:
    return True


class Call(NamedTuple):
    key: str
    port: int  # the caller's
    goes: asyncio.Event


@dataclass
class HeldCounters(Counters):
    """Shut, it takes no effect. Holding, it takes effects and does not say so."""

    pace_seconds: float = 0.0
    held: list[Call] = field(default_factory=list)
    _passes: Keys = _everything

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._is_open.set)

    def hold(self) -> None:
        self._pass_only(lambda _key: False)

    def let_go(self, keys: Keys = _everything) -> None:
        """Those keys alone, now and later; the others are held."""
        self._pass_only(keys)

    def _pass_only(self, keys: Keys) -> None:
        """When it returns, what was held is on its way."""
        change = asyncio.run_coroutine_threadsafe(self._change(keys), self._loop)
        change.result(CHANGE_SECONDS_MAX)

    async def _change(self, keys: Keys) -> None:
        self._passes = keys
        for call in self.held:
            if keys(call.key):
                call.goes.set()
        self.held = [call for call in self.held if not keys(call.key)]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def callers(self, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
        """Those that have a connection to us now."""
        return [process for process in processes if self._ports_of(process)]

    def held_from(self, process: psutil.Process) -> set[str]:
        """Keys of effects that happened and that the process has not heard of."""
        ports = self._ports_of(process)
        return {call.key for call in self.held if call.port in ports}

    def _ports_of(self, process: psutil.Process) -> set[int]:
        try:
            found = process.net_connections("inet")
        except psutil.NoSuchProcess:
            return set()
        there = [each for each in found if each.status == psutil.CONN_ESTABLISHED]
        return {each.laddr.port for each in there if each.raddr.port == self.port}

    async def _serve(self) -> None:
        self._is_open = asyncio.Event()
        await super()._serve()

    async def _answer(self, request: web.Request) -> web.Response:
        target, key = request.match_info["target"], request.headers["Idempotency-Key"]
        if target == HONOURING:
            await self._is_open.wait()
        answer = await super()._answer(request)
        await asyncio.sleep(self.pace_seconds)
        if target == COUNTING and not self._passes(key):
            assert request.transport is not None
            port = request.transport.get_extra_info("peername")[1]
            call = Call(key, port, asyncio.Event())
            self.held.append(call)
            await call.goes.wait()
        return answer
