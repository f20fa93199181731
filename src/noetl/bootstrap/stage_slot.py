"""A slot of a stage inside a Spark task: a worker that serves one stage and then leaves.

Its work comes from the server, its data from the store. Python workers of Spark run task after
task: what is slow to open, and the process for code of playbooks, stays for the slots that follow.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap import collector
from noetl.bootstrap.far_worker import FarTools
from noetl.bootstrap.objects import open_objects
from noetl.bootstrap.results import open_results
from noetl.bootstrap.slot_line import SlotLine
from noetl.bootstrap.slot_task import SlotTask
from noetl.bootstrap.store_keys import with_keys
from noetl.client.connection import Connection
from noetl.domain.work import StageServed, WorkerIdentity
from noetl.kernel.ids import StageId, WorkerId
from noetl.runtime.worker import Worker
from noetl.spark.slots import Slot

Waiting = Coroutine[Any, Any, None]


class SlotDone(msgspec.Struct, frozen=True, kw_only=True):
    reported: int
    lost: int


class _Workshop:
    """What the slots of one Python worker share."""

    def __init__(self, task: SlotTask) -> None:
        self._task = task
        self._stack = AsyncExitStack()
        self._folder = Path(tempfile.gettempdir()) / f"noetl-slot-{new_uuid()}"

    async def opened(self) -> Self:
        settings, variables, stack = self._task.settings, self._task.variables, self._stack
        payload_url = with_keys(settings.payload_url, variables)
        objects = open_objects(msgspec.structs.replace(settings, payload_url=payload_url))
        stack.push_async_callback(objects.close)
        results = await stack.enter_async_context(open_results(settings, objects, variables))
        self.far = FarTools(settings, results, self._folder, Path(self._task.base))
        stack.push_async_callback(self.far.close)
        return self

    def is_for(self, task: SlotTask) -> bool:
        own = self._task
        has_same_keys = own.variables == task.variables
        return has_same_keys and (own.settings, own.base) == (task.settings, task.base)

    @contextmanager
    def in_use(self) -> Iterator[FarTools]:
        """Files of a stage end with it: nobody says when a Python worker ends."""
        self._folder.mkdir(mode=0o700)
        try:
            yield self.far
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def close(self) -> None:
        await self._stack.aclose()


class _Bench:
    """The one workshop of this process, and the loop that everything in it belongs to."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._workshop: _Workshop | None = None

    def run(self, slot: Slot, task: SlotTask) -> SlotDone:
        return self._runner.run(self._serve(slot, task))

    async def _serve(self, slot: Slot, task: SlotTask) -> SlotDone:
        workshop = await self._workshop_for(task)
        try:
            with workshop.in_use() as far:
                return await _serve(slot, task, far)
        except BaseException:
            self._workshop = None  # who knows what state it is in
            await workshop.close()
            raise

    async def _workshop_for(self, task: SlotTask) -> _Workshop:
        """Another one for other settings."""
        kept = self._workshop
        if kept is not None and kept.is_for(task):
            return kept
        self._workshop = None
        if kept is not None:
            await kept.close()
        workshop = _Workshop(task)
        try:
            self._workshop = await workshop.opened()
        except BaseException:
            await workshop.close()
            raise
        return workshop


_benches: list[_Bench] = []


def run_slot(slot: Slot, argument: bytes) -> bytes:
    """What Spark calls: returns when the stage has no more work."""
    if not _benches:  # not when this is imported: workers are copies of a process that did that
        _benches.append(_Bench())
    task = msgspec.msgpack.decode(argument, type=SlotTask)
    return msgspec.json.encode(_benches[0].run(slot, task))


async def _serve(slot: Slot, task: SlotTask, far: FarTools) -> SlotDone:
    clock = SystemClock()
    line = SlotLine(task.server_url, clock)
    connection = Connection(task.server_url, task.token, line)
    try:
        worker = Worker(_identity(slot, task, far.tools.kinds), far.services(connection))
        collector.settle()
        leaving = clock.sleep(task.serve_seconds)
        await _worked(worker, leaving, line.until_silent(task.silent_seconds_max))
    finally:
        await connection.close()
    return SlotDone(reported=worker.counts.reported, lost=worker.counts.lost)


async def _worked(worker: Worker, until_late: Waiting, until_silent: Waiting) -> None:
    """A worker that nobody answers any more is dropped: what it held is lost to it by then."""
    running = asyncio.create_task(worker.run())
    draining = asyncio.create_task(_drained(worker, until_late))
    alone = asyncio.create_task(until_silent)
    try:
        await asyncio.wait([running, alone], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
    finally:
        for task in (running, draining, alone):
            task.cancel()
        await asyncio.gather(running, draining, alone, return_exceptions=True)


async def _drained(worker: Worker, until_late: Waiting) -> None:
    await until_late
    await worker.drain()


def _identity(slot: Slot, task: SlotTask, kinds: tuple[str, ...]) -> WorkerIdentity:
    """A task that is tried again is the same worker under a new boot: what its predecessor held
    is free at once."""
    return WorkerIdentity(
        worker_id=WorkerId(f"spark/{slot.stage_id}/{slot.number}"),
        boot_id=f"{slot.incarnation}",
        slots=task.frames_at_once,
        tools=kinds,
        labels={"engine": "spark"},
        placement=task.settings.placement,
        serves=StageServed(
            execution_id=task.execution_id, stage_id=StageId(slot.stage_id), slot=slot.number
        ),
    )
