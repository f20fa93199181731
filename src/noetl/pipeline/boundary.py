"""Where a tool is called: whatever comes out of it is a result or a ToolFailed."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from noetl.domain.events.values import Failure
from noetl.kernel.errors import ClaimLost, InvariantBroken
from noetl.pipeline.failures import failed
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult

GRACE_SECONDS = 5.0
"""A tool that watches the time itself says more when it is up: it gets the first word."""


class Tools(Protocol):
    """Tools by kind."""

    def get(self, kind: str) -> Tool:
        """Raises ToolFailed for a kind that is unknown, or whose driver is not installed."""
        ...


async def run_tool(tool: Tool, call: ToolCall) -> ToolResult:
    """One try, within the call's timeout. An error that is none of a tool's is a bug of the tool.

    Raises ToolFailed; a lost claim and a broken invariant are not the tool's to answer for.
    """
    limit: asyncio.Timeout | None = None
    try:
        if call.timeout_seconds is None:
            return _checked(await tool.run(call))
        limit = asyncio.timeout(call.timeout_seconds + GRACE_SECONDS)
        async with limit:
            return _checked(await tool.run(call))
    except (ToolFailed, ClaimLost, InvariantBroken):
        raise
    except Exception as error:
        if isinstance(error, TimeoutError) and limit is not None and limit.expired():
            raise _too_slow(call) from error
        raise _bug(error) from error


def has_effect(tool: Tool, parameters: Mapping[str, Any]) -> bool:
    """What the tool says of the call. Raises ToolFailed."""
    try:
        return tool.has_effect(parameters)
    except Exception as error:
        raise _bug(error) from error


def takes_tables(tool: Tool) -> bool:
    """Whether it knows what to do with `TableRows`; most tools want lists."""
    return bool(getattr(tool, "takes_tables", False))


def _checked(result: ToolResult) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(f"the tool returned a {type(result).__name__}, not a ToolResult")
    return result


def _too_slow(call: ToolCall) -> ToolFailed:
    message = (
        f"{call.task} took longer than {call.timeout_seconds:g} seconds;"
        " raise its timeout, or give it less to do"
    )
    return failed("timeout", message, retryable=True)


def _bug(error: Exception) -> ToolFailed:
    name = type(error).__name__
    failure = Failure(kind="unknown", message=f"{name}: {error}" if str(error) else name)
    return ToolFailed(failure, py={"exception": name, "message": str(error)})
