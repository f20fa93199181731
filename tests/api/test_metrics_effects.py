"""Effects at the barrier are counted by what became of them, and by the tool that fired them."""

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from noetl.api.metrics_effects import EffectsCounted
from noetl.domain.events import Event, FrameCommitted, ShardDone, ShardFailed
from noetl.domain.events.values import Failure
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId, LoopId, WorkerId
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
SHARDS = f"""{HEAD}metadata: {{name: shards, path: tests/shards}}
workflow:
  - step: each
    loop:
      in: ["true", "false", "true"]
      iterator: command
      spec: {{mode: fanout, fanout: {{max_shard_retries: 1}}}}
    tool:
      - {{name: first, kind: shell, command: "true"}}
      - {{name: second, kind: shell, command: "{{{{ command }}}}"}}
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


async def test_shards_of_a_fan_out_tell_what_they_fired_also_when_they_failed(api: Api) -> None:
    execution = await api.start(SHARDS)
    assert (await api.ended(execution))["status"] == "COMPLETED"

    # The second try of the one that failed fires its second task only; the first was told.
    assert barrier(await numbers(api)) == {f'{NAME}{{outcome="fired",tool="shell"}}': 2 * 3 + 1}


class Sealed:
    def __init__(self, event: Event) -> None:
        self.event = event


def ended(kind: str, metrics: dict[str, Any]) -> Event:
    if kind == "frame":
        return FrameCommitted(worker_id=WorkerId("w"), row_count=3, metrics=metrics)
    loop, shard = LoopId("each@1"), "each@1/0"
    if kind == "shard":
        return ShardDone(loop_id=loop, shard_id=shard, metrics=metrics)
    error = Failure(kind="shell", message="exit 1", retryable=False)
    return ShardFailed(loop_id=loop, shard_id=shard, error=error, final=True, metrics=metrics)


@pytest.mark.parametrize(
    ("metrics", "tool"),
    [
        ({"effects_by_tool": {"http": {"fired": 2, "repeated": 1, "in_doubt": 3}}}, "http"),
        ({"effects": {"fired": 3, "repeated": 1, "adopted": 0, "in_doubt": 3}}, "unknown"),
    ],
)
@pytest.mark.parametrize("kind", ["frame", "shard", "failed shard"])
def test_a_frame_tells_what_ran_again_and_what_did_not_run(
    metrics: dict[str, Any], tool: str, kind: str
) -> None:
    """Frames of older workers name no tools, and count what ran again among what fired."""
    registry = CollectorRegistry()
    event = ended(kind, metrics)
    events: Sequence[SealedEvent] = [Sealed(event)]  # type: ignore[list-item]

    EffectsCounted(registry, {}).heard(ExecutionId("1"), events)

    found = {
        outcome: registry.get_sample_value(NAME, {"outcome": outcome, "tool": tool})
        for outcome in ("fired", "repeated", "in_doubt", "adopted")
    }
    assert found == {"fired": 2, "repeated": 1, "in_doubt": 3, "adopted": None}
