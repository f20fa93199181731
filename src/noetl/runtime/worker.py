"""claim -> run the pipeline -> report: a worker with its slots, and the leases of what it holds."""

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol

from noetl.domain.playbook.model import Playbook
from noetl.domain.work import CommandWork, Report, Work, WorkerIdentity
from noetl.kernel.errors import ClaimLost, InvariantBroken, NoETLError, StageOver
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.telemetry import NO_TELEMETRY, Telemetry
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.frames import Frames
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.frames_keeping import KeptJournal
from noetl.runtime.log_lines import about
from noetl.runtime.worker_commands import Commands, Pipelines
from noetl.runtime.worker_failures import failed_report
from noetl.runtime.worker_heart import Heart
from noetl.runtime.worker_hold import Beats, Held
from noetl.runtime.worker_patience import insisted
from noetl.runtime.worker_slots import Place, Slots
from noetl.runtime.worker_spans import work_names, work_place

_LOG = logging.getLogger(__name__)
CLAIM_WAIT_SECONDS = 10.0
"""How long a claim waits at the desk: well below a lease, which counts from before the claim."""

BEAT_SECONDS_MAX = 2.0
"""However long a lease is: a heartbeat is also how a worker hears that its work was cancelled."""

GOODBYE_SECONDS_MAX = 10.0
EMPTY_CLAIM_SECONDS = 0.05
"""A pause after an empty answer, in case the desk does not wait as it was asked to."""


class LoadedPlaybooks(Protocol):
    async def load(self, scope: Scope, digest: str) -> Playbook: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerServices:
    """What a worker works with."""

    desk: WorkDesk
    pipelines: Pipelines
    playbooks: LoadedPlaybooks
    results: ResultStore
    journal: FrameJournal
    clock: Clock
    beat_seconds_max: float = BEAT_SECONDS_MAX
    telemetry: Telemetry = NO_TELEMETRY
    cursors: CursorRows | None = None  # None: it gets no frames of cursors


@dataclass(slots=True)
class WorkerCounts:
    """What became of the work, since the worker started."""

    reported: int = 0
    lost: int = 0  # another holder has it, or the lease ran out
    stopped: int = 0  # the execution was cancelled
    broken: int = 0  # a fault of the program, reported as a failure
    refused: int = 0  # the desk takes no report of it, not even of a failure


@dataclass(frozen=True, slots=True)
class _End:
    report: Report
    journal: KeptJournal | None = None


@dataclass(frozen=True, slots=True)
class _Handed:
    """Work from the desk, and when it was asked for."""

    works: Sequence[Work]
    sent_at: float


class Worker:
    """Cancelling `run` drops everything at once, and the desk takes it for lost; see `drain`."""

    def __init__(self, identity: WorkerIdentity, services: WorkerServices) -> None:
        pipelines, results, clock = services.pipelines, services.results, services.clock
        self.counts = WorkerCounts()
        self._identity = identity
        self._services = services
        self._clock = clock
        self._beats = Beats(clock, services.beat_seconds_max)
        self._desk = services.desk
        self._slots = Slots(identity.slots)
        self._heart = Heart(services.desk, identity.worker_id, clock)
        self._commands = Commands(pipelines, results, services.desk, clock)
        self._frames = Frames(pipelines, results, services.journal, clock, services.cursors)
        self._lines: set[asyncio.Task[None]] = set()
        self._claiming: asyncio.Task[None] | None = None
        self._is_draining = False
        self._has_ended = asyncio.Event()

    @property
    def free_slots(self) -> int:
        return self._slots.free

    async def run(self) -> None:
        """Serves until it is drained."""
        try:
            async with asyncio.TaskGroup() as group:
                self._claiming = group.create_task(self._claim(group))
                if self._is_draining:
                    self._claiming.cancel()
                heart = group.create_task(self._heart.run(group))
                await asyncio.wait([self._claiming])
                while self._lines:
                    await asyncio.wait(self._lines)
                heart.cancel()
            with suppress(TimeoutError):  # a desk that is gone learns it by our silence
                async with asyncio.timeout(GOODBYE_SECONDS_MAX):
                    await insisted(
                        lambda: self._desk.deregister(self._identity), _go_on, self._clock
                    )
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several
        finally:
            self._has_ended.set()

    async def drain(self, seconds_max: float = math.inf) -> None:
        """Claims nothing more, lets what runs come to its end, and signs off. Frames end with the
        rows that run. What is late is dropped, and what waits for others: it is handed back."""
        self._is_draining = True
        self._heart.leave()
        if self._claiming is None:
            return
        self._claiming.cancel()
        dropping = asyncio.create_task(self._drop_after(seconds_max))
        try:
            await self._has_ended.wait()
        finally:
            dropping.cancel()

    def drop(self) -> None:
        """Whoever drains waits no longer."""
        self._heart.drop_all()

    async def _drop_after(self, seconds: float) -> None:
        if seconds < math.inf:
            await self._clock.sleep(seconds)
            self.drop()

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        identity = self._identity
        with suppress(StageOver):  # a slot of a stage has done its duty
            await insisted(lambda: self._desk.register(identity), _go_on, self._clock)
            while True:
                await self._slots.until_free()
                handed = await insisted(self._claimed, _go_on, self._clock)
                for work in handed.works:
                    self._begin(group, work, handed.sent_at)
                if not handed.works:
                    await self._clock.sleep(EMPTY_CLAIM_SECONDS)

    async def _claimed(self) -> _Handed:
        sent_at = self._clock.monotonic()
        works = await self._desk.claim(self._identity, self._slots.free, CLAIM_WAIT_SECONDS)
        return _Handed(works, sent_at)

    def _begin(self, group: asyncio.TaskGroup, work: Work, sent_at: float) -> None:
        place = Place(self._slots)
        line = group.create_task(self._line(group, place, _Handed((work,), sent_at)))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)
        line.add_done_callback(lambda _: place.leave())

    async def _line(self, group: asyncio.TaskGroup, place: Place, handed: _Handed) -> None:
        """A piece of work, and in the same slot what its report brings, one after the other.

        The desk takes back what a worker holds that signs off.
        """
        while handed.works and not self._is_draining:
            for further in handed.works[1:]:
                self._begin(group, further, handed.sent_at)
            held = Held(handed.works[0], place, self._beats, handed.sent_at)
            held.task = asyncio.current_task()
            self._heart.keep(held)
            try:
                handed = await self._finish(held, place)
            finally:
                self._heart.let_go(held)
                self._count(held)

    async def _finish(self, held: Held, place: Place) -> _Handed:
        try:
            await place.come_back()
            if self._is_draining:  # it waited for its slot, and has not begun
                return _NOTHING
            await self._heart.make_sure(held)
            end = await self._end(held)
            async with end.journal or nullcontext():
                handed = await self._deliver(held, end)
                self._heart.let_go(held)  # it is over: nobody need hear that it lives
        except ClaimLost:
            held.ended_as = held.ended_as or "lost"
            return _NOTHING
        if end.journal is not None:
            try:
                await end.journal.forget()
            except NoETLError as error:  # what is left of it disturbs nobody
                self._tell(held, logging.INFO, "a journal was left behind: %s", error)
        return handed

    async def _end(self, held: Held) -> _End:
        """The boundary of the service: whatever goes wrong in here is said in a report."""
        try:
            return await self._worked(held)
        except ClaimLost:
            raise
        except Exception as error:  # noqa: BLE001 - else the work would hang until its lease ends
            self.counts.broken += 1
            self._tell(held, logging.ERROR, "work broke: %s", error)
            return _End(failed_report(held.work, self._identity.worker_id, error))

    async def _worked(self, held: Held) -> _End:
        names = work_names(held.work, self._identity.worker_id)
        with self._services.telemetry.span(work_place(held.work), names) as span:
            end = await self._run(held)
            if span is not None and end.report.error is not None:
                span.failed(end.report.error.kind)
            return end

    async def _run(self, held: Held) -> _End:
        work, worker = held.work, self._identity.worker_id
        playbook = await insisted(
            lambda: self._services.playbooks.load(work.scope, work.playbook_digest),
            held.check,
            self._clock,
        )
        if isinstance(work, CommandWork):
            return _End(await self._commands.run(work, playbook, held, worker))
        end = await self._frames.run(work, playbook, held, worker)
        return _End(end.report, end.journal)

    async def _deliver(self, held: Held, end: _End) -> _Handed:
        """Until it is recorded, or the lease is over. Raises ClaimLost."""
        held.is_reporting = True
        try:
            return await self._sent(held, end.report)
        except (ClaimLost, InvariantBroken):
            raise
        except NoETLError as refusal:  # it holds what no event may hold
            self._tell(held, logging.WARNING, "a report was refused: %s", refusal)
            if end.journal is not None:
                await end.journal.keep()
            report = failed_report(held.work, self._identity.worker_id, refusal)
        try:
            return await self._sent(held, report)
        except (ClaimLost, InvariantBroken):
            raise
        except NoETLError as refusal:
            self.counts.refused += 1
            self._tell(
                held, logging.ERROR, "no report is taken, not even of a failure: %s", refusal
            )
            return _NOTHING

    async def _sent(self, held: Held, report: Report) -> _Handed:
        async def ask() -> _Handed:
            sent_at = self._clock.monotonic()
            return _Handed((await self._desk.report(report)).next_work, sent_at)

        handed = await insisted(ask, held.check, self._clock)
        self.counts.reported += 1
        return handed

    def _tell(self, held: Held, level: int, message: str, error: Exception) -> None:
        """The kind of the error, not its words: they may quote data."""
        work, worker = held.work, self._identity.worker_id
        names = about(execution_id=work.execution_id, step=work.step, worker=worker)
        kind = error.code if isinstance(error, NoETLError) else type(error).__name__
        _LOG.log(level, message, kind, extra=names)

    def _count(self, held: Held) -> None:
        self.counts.lost += held.ended_as == "lost"
        self.counts.stopped += held.ended_as == "stopped"


_NOTHING = _Handed((), 0.0)


def _go_on() -> None:
    """Nothing runs out while nothing is held."""
