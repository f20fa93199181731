"""The http tool and a real server to call: fixtures of the tests of both."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.domain.credential import OpenCredential
from noetl.kernel.canonical_json import check_plain
from noetl.ports.tool import ToolFailed, ToolResult
from noetl.tools.http import HttpTool
from tests.tools.http_target import Target, serving
from tests.tools.tool_calls import call, services

SECRET = 'k"ey-very/secret'


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with serving() as target:
        yield target


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[HttpTool]:
    tool = HttpTool(services(tmp_path))
    yield tool
    await tool.close()


async def run(tool: HttpTool, parameters: dict[str, Any], **further: Any) -> ToolResult:
    result = await tool.run(call("http", parameters, **further))
    check_plain(result.value)
    return result


async def failure(tool: HttpTool, parameters: dict[str, Any], **further: Any) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        await tool.run(call("http", parameters, **further))
    return raised.value


def opened(kind: str, **data: Any) -> dict[str, OpenCredential]:
    return {"": OpenCredential(name="mine", type=kind, data=data)}
