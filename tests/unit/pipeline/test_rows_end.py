"""A row that has ended is gone: nothing of it waits for somebody who looks for cycles."""

import gc
from collections.abc import Mapping
from typing import Any

from noetl.pipeline.names import Names
from noetl.pipeline.sight import Sight
from noetl.ports.tool import ToolCall, ToolResult
from tests.unit.pipeline.rows import House, job

STEPS = """
- step: s
  tool:
    - {name: first, kind: noop, result: {n: "{{ ctx.n }}"}, set: {iter.seen: "{{ output.n }}"}}
    - name: second
      kind: noop
      result: "{{ first.n + iter.seen }}"
      spec: {policy: {rules: [{when: "{{ output.data > 100 }}", then: {do: fail}}]}}
"""


class Forgetful:
    """Gives its `result`, and remembers no call."""

    waits = False

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        return ToolResult(value=call.parameters["result"])

    async def close(self) -> None:
        """Nothing to give back."""


async def test_a_row_that_has_ended_holds_nothing_of_itself() -> None:
    house = House(noop=Forgetful())
    row = job(STEPS, ctx={"n": 1})
    gc.collect()
    gc.disable()
    try:
        before = _seen()
        for _ in range(3):
            assert (await house.run(row)).status == "ok"
        assert _seen() == before
    finally:
        gc.enable()


def _seen() -> int:
    return sum(isinstance(each, Sight | Names) for each in gc.get_objects())
