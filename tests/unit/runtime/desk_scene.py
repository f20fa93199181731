"""A coordinator with its desk on a log in memory, rebuilt from the log at will."""

from collections.abc import Callable
from itertools import count
from typing import Any

from noetl.adapters.memory.catalog import MemoryCatalog
from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.work import Report, Reported, Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.kernel.snowflake import SnowflakeSequence
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.runtime.control import Control
from noetl.runtime.coordinator import Coordinator, Held
from noetl.runtime.desk import CoordinatorDesk
from noetl.runtime.handout import LeaseTerms
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.reaper import Reaper
from noetl.runtime.starting import Starter, StartRequest
from noetl.testing.desk_words import ended, worker
from noetl.wire.codec import open_stored
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.runtime.worker_clock import VirtualClock

LEASE_SECONDS = 30.0
ATTEMPTS_MAX = 3
WORKER = worker()


def rising_ids(node: int = 1) -> Callable[[], str]:
    sequence, millis = SnowflakeSequence(node), count(1_767_225_600_000)
    return lambda: sequence.next(next(millis))


class Scene:
    def __init__(
        self, log: EventLog | None = None, payloads: MemoryPayloadStore | None = None
    ) -> None:
        self.clock = VirtualClock()
        self.new_id = rising_ids()
        self.lease_seconds = LEASE_SECONDS
        self.attempts_max = ATTEMPTS_MAX
        self.payloads = payloads or MemoryPayloadStore()
        self.results = memory_results(self.payloads)
        self.log = log or MemoryEventLog(self.clock.now)
        self.snapshots = MemorySnapshotStore()
        self.brought: dict[str, list[Work]] = {}  # what reports brought, by worker
        self.playbooks = Playbooks(MemoryCatalog(self.clock.now, self.new_id), self.payloads)
        self.rebuild()

    def rebuild(self) -> None:
        """As after a restart: everything that is not in the log is forgotten."""
        self.brought.clear()
        terms = LeaseTerms(lease_seconds=LEASE_SECONDS, attempts_max=ATTEMPTS_MAX)
        self.coordinator = Coordinator(
            Held(
                log=self.log,
                results=self.results,
                playbooks=self.playbooks,
                clock=self.clock,
                new_id=self.new_id,
                terms=terms,
                snapshots=self.snapshots,
            )
        )
        self.starter = Starter(self.coordinator, lambda: "job")
        self.control = Control(self.coordinator)
        self.desk = CoordinatorDesk(self.coordinator, self.starter)
        self.reaper = Reaper(self.coordinator, self.clock)

    async def register(self, playbook: str) -> str:
        return (await self.playbooks.register(DEFAULT_SCOPE, playbook)).entry.path

    async def start(self, playbook: str, **payload: Any) -> ExecutionId:
        path = await self.register(playbook)
        return await self.starter.start(
            StartRequest(scope=DEFAULT_SCOPE, path=path, payload=payload)
        )

    async def cancel(self, execution: ExecutionId) -> None:
        await self.control.cancel(DEFAULT_SCOPE, execution)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.reaper.look()
        await self.coordinator.drain()

    async def claim(self, free_slots: int = 100, by: WorkerIdentity = WORKER) -> list[Work]:
        """What reports have brought and what there is now; does not wait for more."""
        brought = self.brought.pop(by.worker_id, [])
        given = await self.desk.claim(by, free_slots - len(brought), 0)
        await self.coordinator.drain()
        seat = self.coordinator.seats.find(by.worker_id)
        return brought + given + ([] if seat is None else seat.collect())

    async def claim_one(self, by: WorkerIdentity = WORKER) -> Work:
        (work,) = await self.claim(1, by)
        return work

    async def report(self, report: Report) -> Reported:
        answer = await self.desk.report(report)
        self.brought.setdefault(report.worker_id, []).extend(answer.next_work)
        return answer

    async def finish(self, work: Work, value: Any = None, by: WorkerIdentity = WORKER) -> None:
        await self.report(ended(work, by, value))

    async def run_to_the_end(self, execution: ExecutionId, by: WorkerIdentity = WORKER) -> str:
        """Work on whatever comes, until nothing comes."""
        while works := await self.claim(by=by):
            for work in works:
                await self.finish(work, work.step, by)
        return await self.status(execution)

    async def status(self, execution: ExecutionId) -> str:
        return (await self.coordinator.load(execution)).state.execution.status

    async def events(self, execution: ExecutionId) -> list[RecordedEvent]:
        found: list[RecordedEvent] = []
        while page := await self.log.read(execution, after_version=len(found)):
            found += [open_stored(stored) for stored in page]
            if len(page) < PAGE_EVENTS_MAX:
                break
        return found

    async def of(self, execution: ExecutionId, event_type: str) -> list[Any]:
        events = await self.events(execution)
        return [each.event for each in events if each.envelope.event_type == event_type]
