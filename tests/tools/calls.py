"""Short ways to call a tool."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from noetl.adapters.system.clock import SystemClock
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.tool import ToolCall
from noetl.ports.tool_services import ToolServices
from noetl.ports.work_desk import WorkDesk
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results


def services(
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    processes_max: int = 2,
    memory_bytes_max: int = 2 * 1024**3,
) -> ToolServices:
    """For tools that never ask the desk."""
    return ToolServices(
        payloads=MemoryPayloadStore(),
        results=memory_results(),
        clock=SystemClock(),
        desk=cast(WorkDesk, None),
        folder=folder,
        base=folder,
        environment=dict(environment or {}),
        python_processes_max=processes_max,
        python_memory_bytes_max=memory_bytes_max,
    )


def call(
    kind: str,
    parameters: dict[str, Any],
    *,
    timeout_seconds: float | None = None,
    scope: Scope = DEFAULT_SCOPE,
    **given: Any,
) -> ToolCall:
    return ToolCall(
        kind=kind,
        task="work",
        step=StepName("step"),
        execution_id=ExecutionId("1"),
        scope=scope,
        parameters=parameters,
        timeout_seconds=timeout_seconds,
        **given,
    )
