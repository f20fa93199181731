"""Targets that can be shut, can keep their callers waiting, and know which process called."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil
from aiohttp import web

from tests.crash.counters import COUNTING, HONOURING, Counters


class Call(NamedTuple):
    key: str
    port: int  # the caller's


@dataclass
class HeldCounters(Counters):
    """Shut, it takes no effect. Holding, it takes effects and does not say so."""

    pace_seconds: float = 0.0
    held: list[Call] = field(default_factory=list)

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._is_open.set)

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._answers.clear)

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._answers.set)
        self.held = []

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
        self._is_open, self._answers = asyncio.Event(), asyncio.Event()
        self._answers.set()
        await super()._serve()

    async def _answer(self, request: web.Request) -> web.Response:
        target = request.match_info["target"]
        if target == HONOURING:
            await self._is_open.wait()
        answer = await super()._answer(request)
        await asyncio.sleep(self.pace_seconds)
        if target == COUNTING and not self._answers.is_set():
            assert request.transport is not None
            port = request.transport.get_extra_info("peername")[1]
            self.held.append(Call(request.headers["Idempotency-Key"], port))
            await self._answers.wait()
        return answer
