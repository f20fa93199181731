"""What the API stands on: given by whoever serves it, so that a test can give its own."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from noetl.api.following import Following
from noetl.api.metrics import Metrics
from noetl.domain.execution.state import ExecutionState
from noetl.domain.naming.cells import CellRegistry
from noetl.domain.naming.placement import CellPlacement
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.catalog import Catalog
from noetl.ports.clock import Clock
from noetl.ports.credential_store import CredentialStore
from noetl.ports.event_log import EventLog
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.payload_store import PayloadStore
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.control import Control
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.executions import Executions
from noetl.runtime.lineage import Lineage
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.replay import Replay
from noetl.runtime.results_gc import ResultCollector
from noetl.runtime.results_repair import ResultRepairs
from noetl.runtime.stage_desk import StageDesk
from noetl.runtime.starting import Starter


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in. Without a key only callers on this machine may."""

    api: str | None = None
    internal: str | None = None  # for workers, and for reading secrets

    def __repr__(self) -> str:
        return f"Keys(api={bool(self.api)}, internal={bool(self.internal)})"


class ApiServices(msgspec.Struct, frozen=True, kw_only=True):
    scope: Scope
    clock: Clock
    log: EventLog
    payloads: PayloadStore
    results: ResultStore
    projections: ProjectionStore
    catalog: Catalog
    credentials: CredentialStore
    playbooks: Playbooks
    coordinator: Coordinator
    starter: Starter
    control: Control
    desk: WorkDesk
    journal: FrameJournal
    executions: Executions
    lineage: Lineage
    stages: StageDesk
    replay: Replay
    collector: ResultCollector
    repairs: Callable[[], AbstractAsyncContextManager[ResultRepairs]]
    metrics: Metrics
    following: Following
    placement: CellPlacement
    cells: CellRegistry
    keys: Keys = Keys()
    version: str = ""

    async def check_scope(self, execution: ExecutionId) -> None:
        """Another tenant's execution is not found, so nobody learns that it exists."""
        if await self.log.scope_of(execution) != self.scope:
            raise ExecutionNotFound(execution)

    async def state(self, execution: ExecutionId) -> ExecutionState:
        """As it is now: in memory while it runs, else folded from the log."""
        await self.check_scope(execution)
        running = self.coordinator.running.get(execution)
        if running is not None and running.head.version > 0:
            return running.state
        return await self.executions.state(self.scope, execution)
