"""Warm processes for code: started when needed, used again while they are fit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from noetl.kernel.scope import Scope
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.python_process import PythonProcess


class PythonPool:
    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._slots = asyncio.Semaphore(services.python_processes_max)
        self._idle: list[PythonProcess] = []  # the last used is the warmest
        self._busy: set[PythonProcess] = set()

    @asynccontextmanager
    async def process(self, scope: Scope) -> AsyncIterator[PythonProcess]:
        """A process for one call. Unless the call was answered, it is ended with all it started."""
        async with self._slots:
            process = await self._take(scope)
            self._busy.add(process)
            try:
                yield process
            finally:
                self._busy.discard(process)
                if process.is_fit:
                    self._idle.append(process)
                else:
                    await process.end()

    def gauges(self) -> dict[str, float]:
        return {
            "python_processes_busy": len(self._busy),
            "python_processes_idle": len(self._idle),
            "python_processes_max": self._services.python_processes_max,
        }

    async def close(self) -> None:
        processes = [*self._idle, *self._busy]
        self._idle.clear()
        for process in processes:
            await process.end()

    async def _take(self, scope: Scope) -> PythonProcess:
        for process in reversed(self._idle):
            if process.scope == scope:
                self._idle.remove(process)
                if process.is_fit:
                    return process
                await process.end()
        if len(self._idle) + len(self._busy) >= self._services.python_processes_max:
            await self._idle.pop(0).end()
        try:
            return PythonProcess(self._services, scope)
        except OSError as error:
            raise failed(
                "unknown",
                f"cannot start a process for code: {error}; free memory and processes there",
                retryable=True,
            ) from error
