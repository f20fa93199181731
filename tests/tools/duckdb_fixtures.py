"""The duckdb tool in a folder of its own: fixtures of its tests."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.kernel.canonical_json import check_plain, encode
from noetl.ports.tool import ToolFailed
from noetl.tools.duckdb import DuckdbTool
from tests.tools.tool_calls import call, services


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[DuckdbTool]:
    tool = DuckdbTool(services(tmp_path))
    yield tool
    await tool.close()


async def run(tool: DuckdbTool, query: Any, **parameters: Any) -> Any:
    names = ("timeout_seconds", "credentials", "execution_id")
    further = {name: parameters.pop(name) for name in names if name in parameters}
    result = await tool.run(call("duckdb", {"query": query, **parameters}, **further))
    check_plain(result.value)
    encode(result.value)
    return result.value


async def failure(tool: DuckdbTool, query: Any, **parameters: Any) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        await run(tool, query, **parameters)
    return raised.value
