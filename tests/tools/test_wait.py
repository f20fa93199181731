"""A wait among other tasks: as long as it was told, without a slot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.tool import ToolCall, ToolFailed
from noetl.testing.compliance.tool import ToolCompliance
from noetl.tools.wait import WaitTool
from tests.tools.tool_calls import call, services
from tests.unit.runtime.worker_clock import VirtualClock


class TestWait(ToolCompliance):
    @pytest.fixture
    def tool(self, tmp_path: Path) -> WaitTool:
        return WaitTool(services(tmp_path))

    def comparable(self, value: Any) -> Any:
        return value["status"]

    @pytest.fixture
    def good_call(self) -> ToolCall:
        return call("wait", {"until": "2020-01-01T00:00:00Z"})

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        return call("wait", {"seconds": "1h"})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        return call("wait", {"seconds": "soon"})


async def test_it_comes_back_when_it_is_due(tmp_path: Path) -> None:
    clock = VirtualClock()
    tool = WaitTool(services(tmp_path, clock=clock))
    waiting = asyncio.create_task(tool.run(call("wait", {"seconds": "2m"})))

    await clock.advance(119)
    assert not waiting.done()
    await clock.advance(2)

    assert (await waiting).value["status"] == "ok"
    assert tool.waits
    assert not tool.has_effect({})


async def test_what_is_no_time_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="such as 30s"):
        await WaitTool(services(tmp_path)).run(call("wait", {"seconds": "soon"}))
