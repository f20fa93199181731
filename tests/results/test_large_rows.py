"""Rows of a loop whose results are large: each is stored, and their frame's output beside them."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.runtime.starting import StartRequest

END_SECONDS = 120
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: tests/large}
workflow:
  - step: each
    loop: {in: [1, 2, 3, 4], iterator: n, spec: {mode: parallel, frame: {max_rows: 2, PROCESS}}}
    tool:
      kind: python
      code: |
        result = [{"i": i, "text": "x" * 100_000} for i in range(2)]
    next: last
  - {step: last, tool: {kind: noop, result: "{{ each.results | length }}"}}
"""


@pytest.mark.parametrize("process", ["row", "frame"])
async def test_a_loop_gives_large_rows_on(tmp_path: Path, process: str) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with open_engine(settings) as engine:
        text = PLAYBOOK.replace("PROCESS", f"process: {process}")
        await engine.playbooks.register(settings.scope, text)
        request = StartRequest(scope=settings.scope, path="tests/large")
        execution = await engine.starter.start(request)
        ending = await engine.coordinator.ending(execution, END_SECONDS)
    assert ending is not None
    assert ending.status == "COMPLETED", ending
    assert ending.result is not None
    assert ending.result.context["value"] == 4
