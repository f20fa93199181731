"""The tools that start processes keep the promises that all tools make."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.ports.tool import ToolCall
from noetl.testing.compliance.tool import Look, ToolCompliance
from noetl.tools.python import PythonTool
from noetl.tools.shell import ShellTool
from tests.servers.processes import survivors
from tests.tools.tool_calls import call, services

SECRET = "hunter2-hunter2"


def sleepers() -> Look:
    """What slow calls start, as far as it is below this process."""

    async def processes() -> list[str]:
        below = psutil.Process().children(recursive=True)
        found = [each for each in below if "sleep" in " ".join(_command(each))]
        return [str(each) for each in await asyncio.to_thread(survivors, found)]

    return processes


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class TestShell(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[ShellTool]:
        opened = ShellTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self) -> ToolCall:
        return call("shell", {"cmds": ["echo one", "echo two"], "env": {"A": "b"}})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        return call("shell", {"cmds": ["exit 3"], "env": {"PASSWORD": SECRET}})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        return call("shell", {"cmds": ["sleep 3600 & sleep 3600"]})

    @pytest.fixture
    def left_running(self) -> Look:
        return sleepers()

    def comparable(self, value: Any) -> Any:
        return {**value, "duration_ms": None}


class TestPython(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[PythonTool]:
        opened = PythonTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self) -> ToolCall:
        given = {"code": "result = {'n': n + 1}", "libs": {"m": "math"}, "env": {"A": "b"}}
        return call("python", given, input={"n": 1})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        return call("python", {"code": "raise ValueError('no')", "env": {"PASSWORD": SECRET}})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        code = "import subprocess\nsubprocess.run(['sleep', '3600'])"
        return call("python", {"code": code})

    @pytest.fixture
    def left_running(self) -> Look:
        return sleepers()
