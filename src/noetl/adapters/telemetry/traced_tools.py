"""Tools whose calls are spans. What a call holds is not told: it may be secret."""

from collections.abc import Mapping
from typing import Any

from noetl.pipeline.boundary import Tools, takes_tables
from noetl.ports.telemetry import Attributes, SpanPlace, Telemetry
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult


class TracedTools:
    def __init__(self, tools: Tools, telemetry: Telemetry) -> None:
        self._tools = tools
        self._telemetry = telemetry

    def get(self, kind: str) -> Tool:
        return TracedTool(self._tools.get(kind), self._telemetry)


class TracedTool:
    def __init__(self, tool: Tool, telemetry: Telemetry) -> None:
        self._tool = tool
        self._telemetry = telemetry

    @property
    def waits(self) -> bool:
        return self._tool.waits

    @property
    def takes_tables(self) -> bool:
        return takes_tables(self._tool)

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return self._tool.has_effect(parameters)

    async def run(self, call: ToolCall) -> ToolResult:
        place = SpanPlace("tool", f"tool {call.kind}", call.execution_id)
        names: Attributes = {
            "noetl.tool": call.kind,
            "noetl.task": call.task,
            "noetl.step": call.step,
            "noetl.attempt": call.attempt,
        }
        with self._telemetry.span(place, names) as span:
            try:
                return await self._tool.run(call)
            except ToolFailed as failure:
                if span is not None:
                    span.failed(failure.failure.kind)
                raise

    async def close(self) -> None:
        await self._tool.close()
