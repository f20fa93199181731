"""Read a stored result back, or store a value: `artifact`, `result_fetch` and `resolve`."""

from collections.abc import Mapping
from typing import Any

from noetl.domain.playbook.wording import shown
from noetl.ports.tool import ToolCall, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.stored_values import read_value, write_value

_REFERENCE_NAMES = ("result_ref", "ref", "uri", "_ref")


class ArtifactTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        self._payloads = services.payloads
        self._results = services.results

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        del parameters
        return False  # putting the same bytes again is the same object

    async def run(self, call: ToolCall) -> ToolResult:
        action = call.parameters.get("action") or "get"
        if action == "get":
            return ToolResult(value=await self._get(call))
        if action == "put":
            return ToolResult(value=await self._put(call))
        raise failed("client_error", f"an artifact has no action {shown(action)!r}; use get or put")

    async def close(self) -> None:
        """The payload store is not ours to close."""

    async def _get(self, call: ToolCall) -> Any:
        uri = _reference_in(call.parameters) or _reference_in(call.input)
        if uri is None:
            raise failed(
                "client_error",
                f"the {call.kind} tool needs the reference of a stored result;"
                " give `result_ref: '{{ step._ref }}'` (a small result has none: use it directly)",
            )
        value = await read_value(uri, self._results, call.scope)
        if not isinstance(value, dict):
            return value
        # Its own fields first, so that a field called `data` is not hidden by the whole.
        return {"data": value, **value, "_ref": uri}

    async def _put(self, call: ToolCall) -> Any:
        for given in (call.parameters, call.input):
            if "data" in given:
                reference = await write_value(given["data"], self._payloads, call.scope)
                return {
                    "_ref": reference.uri,
                    "sha256": reference.sha256,
                    "bytes": reference.byte_length,
                }
        raise failed("client_error", "an artifact put needs `data`: what to store")


def _reference_in(given: Any) -> str | None:
    """A reference is text, or a mapping that holds one under one of its names."""
    if isinstance(given, str):
        return given or None
    if isinstance(given, Mapping):
        for name in _REFERENCE_NAMES:
            found = _reference_in(given.get(name))
            if found is not None:
                return found
    return None
