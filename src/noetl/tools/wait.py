"""Wait among other tasks, or for each row of a loop. A step that only waits needs no worker."""

from collections.abc import Mapping
from typing import Any

from noetl.decider.waits import WaitInvalid, due_of
from noetl.kernel.instant import seconds_between
from noetl.ports.tool import ToolCall, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed


class WaitTool:
    """Holds no slot. Whoever takes the work over from a lost worker begins to wait anew."""

    waits = True

    def __init__(self, services: ToolServices) -> None:
        self._clock = services.clock

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        now = self._clock.now()
        try:
            due = due_of(call.parameters, now)
        except WaitInvalid as error:
            raise failed("client_error", f"the wait of task {call.task!r}: {error}") from error
        seconds, limit = seconds_between(now, due), call.timeout_seconds
        if limit is not None and limit < seconds:
            await self._clock.sleep(limit)
            raise failed(
                "timeout",
                f"the wait of task {call.task!r} is not over after {limit:g} seconds; give it more"
                " `timeout`, or none",
            )
        await self._clock.sleep(seconds)
        return ToolResult(value={"status": "ok", "until": due})

    async def close(self) -> None:
        """Nothing to give back."""
