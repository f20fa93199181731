"""A package besides ours offers a tool: playbooks may name it, and it runs."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from noetl.bootstrap.checking import check
from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.runtime.starting import StartRequest
from noetl.templates.recorded import value_of

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: reverse, path: tests/reverse}
workflow:
  - step: start
    tool: {kind: reverse, input: {text: "abc"}, loudly: "{{ 1 == 1 }}"}
"""
TOOL = """
from noetl.ports.tool import ToolResult

class ReverseTool:
    waits = False

    def __init__(self, services):
        self.clock = services.clock

    def has_effect(self, parameters):
        return False

    async def run(self, call):
        text = call.input["text"][::-1]
        return ToolResult(value=text.upper() if call.parameters["loudly"] else text)

    async def close(self):
        pass
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with an entry point, as pip would have laid it out."""
    (tmp_path / "reverse_tool.py").write_text(TOOL)
    about = tmp_path / "reverse_tool-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: reverse-tool\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        dedent("""
            [noetl.tools]
            reverse = reverse_tool:ReverseTool
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "reverse_tool", raising=False)


def test_without_the_package_the_kind_is_unknown() -> None:
    (problem,) = check(TEXT).problems
    assert "there is no tool kind 'reverse'" in problem.message


@pytest.mark.usefixtures("installed")
async def test_with_the_package_it_runs(tmp_path: Path) -> None:
    assert check(TEXT).is_sound
    async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
        await engine.playbooks.register(engine.settings.scope, TEXT)
        request = StartRequest(scope=engine.settings.scope, path="tests/reverse")
        ending = await engine.coordinator.ending(await engine.starter.start(request), 60)
    assert ending is not None
    assert ending.result is not None
    assert value_of(ending.result) == "CBA"
