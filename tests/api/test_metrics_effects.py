"""Effects at the barrier are counted by what became of them, and by the tool that fired them."""

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from noetl.api.metrics_effects import EffectsCounted
from noetl.domain.events import Event, FrameCommitted
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId, WorkerId
from tests.api.running import Api
from tests.api.test_metrics import HEAD, numbers

NAME = "noetl_worker_side_effect_barrier_total"
SHELLS = f"""{HEAD}metadata: {{name: shells, path: tests/shells}}
workload: {{door: ""}}
workflow:
  - step: start
    tool:
      - {{name: first, kind: shell, command: "true"}}
      - {{name: code, kind: python, code: "result = 1"}}
      - {{name: knock, kind: shell, command: 'cat "{{{{ door }}}}"'}}
    next: each
  - step: each
    loop:
      in: "{{{{ range(4) | list }}}}"
      iterator: row
      spec: {{mode: parallel, frame: {{max_rows: 2}}}}
    tool: {{kind: shell, command: "true"}}
"""


def barrier(told: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in told.items() if name.startswith(NAME)}


async def test_what_fired_and_what_a_retry_adopted(api: Api, tmp_path: Any) -> None:
    door = tmp_path / "door"
    execution = await api.start(SHELLS, door=str(door))
    assert (await api.ended(execution))["status"] == "FAILED"
    door.write_text("open")
    await api.post(f"/api/executions/{execution}/retry")
    assert (await api.ended(execution))["status"] == "COMPLETED"

    assert barrier(await numbers(api)) == {
        f'{NAME}{{outcome="fired",tool="shell"}}': 3 + 4,
        f'{NAME}{{outcome="fired",tool="python"}}': 1,
        f'{NAME}{{outcome="adopted",tool="shell"}}': 1,
        f'{NAME}{{outcome="adopted",tool="python"}}': 1,
    }


class Sealed:
    def __init__(self, event: Event) -> None:
        self.event = event


@pytest.mark.parametrize(
    ("metrics", "tool"),
    [
        ({"effects_by_tool": {"http": {"fired": 2, "repeated": 1, "in_doubt": 3}}}, "http"),
        ({"effects": {"fired": 3, "repeated": 1, "adopted": 0, "in_doubt": 3}}, "unknown"),
    ],
)
def test_a_frame_tells_what_ran_again_and_what_did_not_run(
    metrics: dict[str, Any], tool: str
) -> None:
    """Frames of older workers name no tools, and count what ran again among what fired."""
    registry = CollectorRegistry()
    event = FrameCommitted(worker_id=WorkerId("w"), row_count=3, metrics=metrics)
    events: Sequence[SealedEvent] = [Sealed(event)]  # type: ignore[list-item]

    EffectsCounted(registry, {}).heard(ExecutionId("1"), events)

    found = {
        outcome: registry.get_sample_value(NAME, {"outcome": outcome, "tool": tool})
        for outcome in ("fired", "repeated", "in_doubt", "adopted")
    }
    assert found == {"fired": 2, "repeated": 1, "in_doubt": 3, "adopted": None}
