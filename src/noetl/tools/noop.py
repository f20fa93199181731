"""The tool that does nothing, so that policy and `set` have something to stand on."""

from collections.abc import Mapping
from typing import Any

from noetl.ports.tool import ToolCall, ToolResult
from noetl.ports.tool_services import ToolServices


class NoopTool:
    """`result` comes back as it is; without one the answer says that all is well."""

    waits = False

    def __init__(self, services: ToolServices) -> None:
        """It stands on nothing; the argument is what every factory takes."""

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        if "result" in call.parameters:
            return ToolResult(value=call.parameters["result"])
        message = call.parameters.get("message")
        return ToolResult(
            value={"status": "ok"} | ({} if message is None else {"message": message})
        )

    async def close(self) -> None:
        """Nothing to give back."""
