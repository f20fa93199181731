"""Work goes to workers that have its tool, and when nobody has it, it can be told why it waits."""

import msgspec
import pytest

from noetl.domain.playbook.needs import kinds_needed
from noetl.domain.work import WorkerIdentity
from noetl.kernel.ids import ExecutionId, StepName, WorkerId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.explain import explain
from noetl.runtime.seats import why_nobody
from noetl.testing.desk_words import worker
from tests.unit.runtime.desk_scene import Scene

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
HTTP = f"""{HEAD}metadata: {{name: h, path: needs/http}}
workflow:
  - {{step: start, tool: {{kind: http, url: "http://localhost"}}}}
"""
NOOP = f"""{HEAD}metadata: {{name: n, path: needs/noop}}
workflow:
  - {{step: start, tool: {{kind: noop}}}}
"""
BOTH = f"""{HEAD}metadata: {{name: b, path: needs/both}}
workflow:
  - step: start
    tool: {{kind: noop}}
    next: {{spec: {{mode: inclusive}}, arcs: [{{step: far}}, {{step: near}}]}}
  - {{step: far, tool: {{kind: http, url: "http://localhost"}}}}
  - {{step: near, tool: {{kind: noop}}}}
"""
LOOP = f"""{HEAD}metadata: {{name: l, path: needs/loop}}
workflow:
  - step: each
    loop: {{in: "{{{{ range(3) | list }}}}", iterator: row, spec: {{mode: parallel}}}}
    tool: {{kind: http, url: "http://localhost"}}
"""
WORKBOOK = f"""{HEAD}metadata: {{name: w, path: needs/workbook}}
workbook:
  - {{name: fetch, tool: {{kind: http, url: "http://localhost"}}}}
workflow:
  - {{step: start, tool: {{kind: workbook, name: fetch}}}}
"""


def with_tools(name: str, *tools: str, slots: int = 4) -> WorkerIdentity:
    return msgspec.structs.replace(worker(name, slots=slots), tools=tools)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def why(scene: Scene, execution: ExecutionId) -> list[str]:
    running = await scene.coordinator.load(execution)
    playbook, seats = running.plan.playbook, scene.coordinator.seats
    return explain(
        running.state,
        running.plan,
        scene.clock.now(),
        lambda step: why_nobody(seats, playbook, step),
    )


async def test_work_is_given_only_to_a_worker_that_has_its_tool(scene: Scene) -> None:
    await scene.start(HTTP)

    assert await scene.claim(by=with_tools("plain", "noop", "python")) == []
    assert len(await scene.claim(by=with_tools("able", "noop", "http"))) == 1


async def test_a_worker_that_does_not_name_its_tools_gets_anything(scene: Scene) -> None:
    await scene.start(HTTP)
    assert len(await scene.claim(by=worker("old"))) == 1


async def test_frames_go_only_to_workers_with_the_tool(scene: Scene) -> None:
    await scene.start(LOOP)

    assert await scene.claim(by=with_tools("plain", "noop")) == []
    assert await scene.claim(by=with_tools("able", "http"))


async def test_work_that_nobody_can_do_holds_up_neither_its_execution_nor_others(
    scene: Scene,
) -> None:
    plain = with_tools("plain", "noop")
    await scene.start(HTTP)
    both, other = await scene.start(BOTH), await scene.start(NOOP)

    assert await scene.run_to_the_end(other, by=plain) == "COMPLETED"
    state = (await scene.coordinator.load(both)).state
    assert [(row.step, row.status) for row in state.commands.values()] == [("far", "PENDING")]
    assert len(scene.coordinator.seats.starving) == 2


async def test_a_worker_with_the_tool_that_comes_later_gets_what_waited(scene: Scene) -> None:
    execution = await scene.start(BOTH)
    await scene.run_to_the_end(execution, by=with_tools("plain", "noop"))

    assert await scene.run_to_the_end(execution, by=with_tools("able", "http")) == "COMPLETED"
    assert not scene.coordinator.seats.starving


async def test_a_free_worker_without_the_tool_does_not_keep_the_coordinator_busy(
    scene: Scene,
) -> None:
    await scene.start(HTTP)
    await scene.claim(by=with_tools("plain", "noop"))

    scene.coordinator.feed()

    assert scene.coordinator.seats.hungry(scene.clock.now()) is None
    await scene.coordinator.drain()


async def test_a_kind_that_this_installation_never_had_goes_out_to_fail_with_advice(
    scene: Scene,
) -> None:
    scene.coordinator.seats.offered = frozenset({"noop"})
    await scene.start(HTTP)

    assert len(await scene.claim(by=with_tools("plain", "noop"))) == 1


async def test_a_kind_that_only_another_worker_has_goes_to_that_worker(scene: Scene) -> None:
    scene.coordinator.seats.offered = frozenset({"noop"})
    await scene.claim(by=with_tools("able", "http"), free_slots=0)
    await scene.start(HTTP)

    assert await scene.claim(by=with_tools("plain", "noop")) == []
    assert len(await scene.claim(by=with_tools("able", "http"))) == 1


async def test_explain_says_which_tool_no_worker_has(scene: Scene) -> None:
    execution = await scene.start(HTTP)
    loop = await scene.start(LOOP)
    assert "waits for a worker" in (await why(scene, execution))[0]
    assert (await why(scene, execution))[0].endswith(": none is connected.")

    await scene.claim(by=with_tools("plain", "noop"))
    assert (await why(scene, execution))[0].endswith(": no worker has tool http.")
    assert "Loop each waits for a worker: no worker has tool http." in await why(scene, loop)

    await scene.claim(by=with_tools("able", "http"), free_slots=0)
    assert "waits for a free slot of a worker" in (await why(scene, execution))[0]


async def test_the_tool_of_a_workbook_task_counts(scene: Scene) -> None:
    path = await scene.register(WORKBOOK)
    entry = await scene.playbooks.find(DEFAULT_SCOPE, path=path)
    playbook = await scene.playbooks.load(DEFAULT_SCOPE, entry.digest)

    assert kinds_needed(playbook, StepName("start")) == {"http"}
    assert kinds_needed(playbook, StepName("nowhere")) == frozenset()


async def test_a_worker_that_says_nothing_for_long_loses_its_seat(scene: Scene) -> None:
    await scene.start(NOOP)
    quiet, busy = worker("quiet"), worker("busy")
    await scene.claim(by=busy)
    await scene.claim(by=quiet, free_slots=0)
    await scene.clock.advance(100)
    scene.coordinator.seats.hear(WorkerId("busy"), scene.clock.now())

    lost = scene.coordinator.seats.take_lost(scene.clock.now(), 60)

    assert [seat.worker.worker_id for seat in lost] == ["quiet"]
    (kept,) = scene.coordinator.seats.all()
    assert kept.status(scene.clock.now()) == "busy"
