"""A step that failed is retried: what its pipeline had left in the store is nobody's in the way."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of

HEAD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: retried, path: tests/retried}
workload: {door: ""}
workflow:
  - step: enter
    output: {store: {kind: object}}
"""
KNOCK = "'date +%N; cat \"{{ door }}\"'"
ALONE = f"{HEAD}    tool: {{kind: shell, command: {KNOCK}}}\n    next: done\n"
AFTER_ANOTHER = f"""{HEAD}
    tool:
      - {{name: first, kind: shell, command: date +%N, output: {{store: {{kind: object}}}}}}
      - {{name: knock, kind: shell, command: {KNOCK}}}
    next: done
"""
DONE = "  - {step: done, tool: {kind: noop, result: fine}}\n"


async def ended(engine: Engine, execution: ExecutionId) -> tuple[str, object]:
    ending = await engine.coordinator.ending(execution, 60)
    assert ending is not None
    result = None if ending.result is None else plain_result(value_of(ending.result))
    return ending.status, ending.error or result


@pytest.mark.parametrize("text", [ALONE, AFTER_ANOTHER])
async def test_a_result_that_follows_a_failure_has_a_name_of_its_own(
    tmp_path: Path, text: str
) -> None:
    """Both leave an object: what the failed one said, and what the next one gives."""
    door = tmp_path / "door"
    async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
        scope = engine.settings.scope
        await engine.playbooks.register(scope, text + DONE)
        execution = await engine.starter.start(
            StartRequest(scope=scope, path="tests/retried", payload={"door": str(door)})
        )
        for _ in range(2):
            status, _ = await ended(engine, execution)
            assert status == "FAILED"
            await engine.control.retry(scope, execution)
        assert (await ended(engine, execution))[0] == "FAILED"
        door.write_text("open")

        await engine.control.retry(scope, execution)

        assert await ended(engine, execution) == ("COMPLETED", "fine")
