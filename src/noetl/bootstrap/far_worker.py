"""What a worker works with whose desk is on the other side of a connection."""

from pathlib import Path

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.settings import Settings, child_environment
from noetl.bootstrap.telemetry import traced
from noetl.client.connection import Connection
from noetl.client.credentials import HttpCredentialStore
from noetl.client.frame_journal import HttpFrameJournal
from noetl.client.playbooks import HttpPlaybooks
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.work import ChildOutcome, ChildRequest
from noetl.kernel.ids import ExecutionId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.telemetry import NO_TELEMETRY, Telemetry
from noetl.ports.tool_services import ToolServices
from noetl.ports.work_desk import ChildDesk
from noetl.results.store import ResultStore
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.worker import WorkerServices
from noetl.tools.cursors import CursorDrivers
from noetl.tools.registry import Tools


class FarTools:
    """Tools, with their processes and sessions, that may outlive the connection to a desk."""

    def __init__(self, settings: Settings, results: ResultStore, folder: Path, base: Path) -> None:
        self._settings = settings
        self._results = results
        self._clock = SystemClock()
        self._children = _Children()
        given = ToolServices(
            payloads=results.payloads,
            results=results,
            clock=self._clock,
            desk=self._children,
            folder=folder,
            base=base,
            environment=child_environment(),
            python_processes_max=settings.processors,
            python_memory_bytes_max=settings.python_memory_mb * 1024 * 1024,
        )
        self.tools, self._drivers = Tools(given), CursorDrivers(given)

    def services(
        self, connection: Connection, telemetry: Telemetry = NO_TELEMETRY
    ) -> WorkerServices:
        """For one worker at a time: sub-playbooks are asked for at the newest desk."""
        results, clock = self._results, self._clock
        desk = self._children.desk = HttpWorkDesk(connection)
        credentials = HttpCredentialStore(connection, self._settings.scope)
        tools = traced(self.tools, telemetry)
        interpreter = Interpreter(tools, credentials, results, clock, new_uuid)
        return WorkerServices(
            desk=desk,
            pipelines=interpreter,
            playbooks=HttpPlaybooks(connection),
            results=results,
            journal=HttpFrameJournal(connection),
            clock=clock,
            telemetry=telemetry,
            cursors=CursorRows(
                drivers=self._drivers, calls=interpreter, desk=desk, results=results, clock=clock
            ),
        )

    async def close(self) -> None:
        await self._drivers.close()
        await self.tools.close()


class _Children:
    """The desk of whoever works now."""

    desk: ChildDesk

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        return await self.desk.start_child(request)

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        return await self.desk.await_child(child, wait_seconds=wait_seconds)
