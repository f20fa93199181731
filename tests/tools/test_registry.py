"""Tools are found by kind, made once, and closed together."""

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from noetl.dsl.language.kinds import RUNNING_KINDS
from noetl.kernel.errors import SettingInvalid
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.registry import Tools, tool_factories
from tests.tools.tool_calls import call, services

NO_DRIVER = """
import sys
from noetl.tools.registry import tool_factories
tool_factories()
drivers = {"aiohttp", "asyncpg", "duckdb", "nats", "obstore", "sqlite3"}
print(sorted(drivers & sys.modules.keys()))
"""


class Echo:
    """A third party's tool."""

    waits = False

    def __init__(self, given: ToolServices) -> None:
        self.given = given
        self.closed = 0

    def has_effect(self, parameters: Any) -> bool:
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        return ToolResult(value=call.parameters)

    async def close(self) -> None:
        self.closed += 1


class Stubborn(Echo):
    async def close(self) -> None:
        raise OSError("it does not close")


def offer(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    offered = [EntryPoint(name, value, "noetl.tools") for name, value in points.items()]

    def entry_points(*, group: str) -> EntryPoints:
        return EntryPoints(offered).select(group=group)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)


def test_every_kind_that_the_language_runs_has_a_tool() -> None:
    # `workbook` is resolved by the interpreter; `spark` runs where Spark is.
    assert set(RUNNING_KINDS) - set(tool_factories()) <= {"workbook", "spark"}
    assert "resolve" in tool_factories()


def test_knowing_the_kinds_imports_no_driver() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_DRIVER], check=True, capture_output=True, text=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", ["playbook", "nats", "artifact", "resolve", "transfer", "secrets"])
async def test_a_built_in_kind_is_made_on_first_use_and_only_once(
    tmp_path: Path, kind: str
) -> None:
    tools = Tools(services(tmp_path))

    assert tools.get(kind) is tools.get(kind)
    await tools.close()


def test_an_unknown_kind_names_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="there is no tool 'postgras'; did you mean 'postgres'"):
        Tools(services(tmp_path)).get("postgras")


def test_a_kind_that_is_like_no_other_gets_the_whole_list(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"use artifact, duckdb, .* or wait") as raised:
        Tools(services(tmp_path)).get("zzz")

    assert raised.value.failure.kind == "client_error"


async def test_a_package_adds_a_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer(monkeypatch, echo=f"{__name__}:Echo")
    given = services(tmp_path)
    tools = Tools(given)
    tool = tools.get("echo")

    result = await tool.run(call("echo", {"a": 1}))
    await tools.close()

    assert isinstance(tool, Echo)
    assert result.value == {"a": 1}
    assert (tool.given, tool.closed) == (given, 1)


def test_an_entry_point_is_loaded_when_its_kind_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(monkeypatch, gone="no_such_package:Tool")
    tools = Tools(services(tmp_path))

    assert "gone" in tools.kinds
    with pytest.raises(ToolFailed, match="the gone tool cannot be loaded from no_such_package"):
        tools.get("gone")


def test_a_package_cannot_take_the_place_of_a_built_in_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, http="evil:Tool")

    with pytest.raises(SettingInvalid, match="the tool kind 'http' of evil:Tool exists already"):
        tool_factories()


def test_a_missing_driver_names_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "nats"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("noetl.tools.nats")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nats", None)

    with pytest.raises(
        ToolFailed, match=r"needs the package 'nats.*'; pip install 'noetl\[nats\]'"
    ):
        Tools(services(tmp_path)).get("nats")


async def test_one_tool_that_does_not_close_keeps_no_other_open(tmp_path: Path) -> None:
    tools = Tools(services(tmp_path), {"first": Echo, "bad": Stubborn, "last": Echo})
    first: Tool = tools.get("first")
    tools.get("bad")
    last: Tool = tools.get("last")

    with pytest.raises(OSError, match="does not close"):
        await tools.close()

    assert isinstance(first, Echo)
    assert isinstance(last, Echo)
    assert (first.closed, last.closed) == (1, 1)
