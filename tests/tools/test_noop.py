"""Nothing is done, and the answer says so."""

from pathlib import Path

import pytest

from noetl.tools.noop import NoopTool
from tests.tools.calls import call, services


@pytest.fixture
def tool(tmp_path: Path) -> NoopTool:
    return NoopTool(services(tmp_path))


async def test_without_parameters_all_is_well(tool: NoopTool) -> None:
    assert (await tool.run(call("noop", {}))).value == {"status": "ok"}


async def test_a_message_is_repeated(tool: NoopTool) -> None:
    answer = await tool.run(call("noop", {"message": "hello"}))

    assert answer.value == {"status": "ok", "message": "hello"}


@pytest.mark.parametrize("result", [{"a": [1]}, None, 0, "text"])
async def test_a_result_comes_back_as_it_is(tool: NoopTool, result: object) -> None:
    assert (await tool.run(call("noop", {"result": result}))).value == result


async def test_doing_nothing_twice_is_harmless(tool: NoopTool) -> None:
    assert not tool.has_effect({})
    await tool.close()
