"""An execution begins once and whole, or not at all."""

import asyncio

import pytest

from noetl.kernel.errors import EntryNotFound, LogUnavailable, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.starting import WORKLOAD_BYTES_MAX, StartRequest
from noetl.testing.desk_words import CHAIN, types
from tests.unit.runtime.desk_scene import Scene
from tests.unit.runtime.obedient_log import ObedientLog

GIVEN = ExecutionId("264905529757790000")
TIMED = CHAIN.replace("workflow:", 'workload: {at: "{{ now() }}", id: "{{ job.uuid }}"}\nworkflow:')


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


def request(**fields: object) -> StartRequest:
    return StartRequest(scope=DEFAULT_SCOPE, path="desk/chain", **fields)  # type: ignore[arg-type]


async def nothing_is_left(scene: Scene) -> bool:
    await scene.coordinator.drain()
    return not scene.coordinator.running and not await scene.log.tail()


async def test_the_first_append_has_everything_up_to_the_first_command(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.start(CHAIN)

    assert log.appends == [["playbook.initialized", "step.enter", "command.issued"]]


async def test_started_twice_under_one_id_it_starts_once(scene: Scene) -> None:
    await scene.register(CHAIN)

    at_once = await asyncio.gather(
        *(scene.starter.start(request(execution_id=GIVEN)) for _ in range(3))
    )
    later = await scene.starter.start(request(execution_id=GIVEN))
    assert await scene.run_to_the_end(GIVEN) == "COMPLETED"
    after_its_end = await scene.starter.start(request(execution_id=GIVEN))

    assert {*at_once, later, after_its_end} == {GIVEN}
    assert types(await scene.events(GIVEN)).count("playbook.initialized") == 1
    assert not scene.coordinator.running


async def test_started_by_two_processes_at_once_it_starts_once(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.register(CHAIN)
    other = Scene(log)
    other.playbooks, other.payloads, other.new_id = scene.playbooks, scene.payloads, scene.new_id
    other.rebuild()
    log.hold()
    starts = [
        asyncio.create_task(each.starter.start(request(execution_id=GIVEN)))
        for each in (scene, other)
    ]
    for _ in range(20):
        await asyncio.sleep(0)
    log.let_go()

    assert await asyncio.gather(*starts) == [GIVEN, GIVEN]
    assert types(await scene.events(GIVEN)).count("playbook.initialized") == 1


async def test_an_unknown_path_is_refused_with_a_hint(scene: Scene) -> None:
    await scene.register(CHAIN)
    asked = StartRequest(scope=DEFAULT_SCOPE, path="desk/chian")

    with pytest.raises(EntryNotFound, match="did you mean 'desk/chain'"):
        await scene.starter.start(asked)
    assert await nothing_is_left(scene)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"rows": "x" * WORKLOAD_BYTES_MAX}, "at most 131072 are allowed; keep data in files"),
        ({"rate": float("nan")}, "rate"),
        ({"rows": {1, 2}}, "rows"),
    ],
    ids=["too large", "not a number", "not plain"],
)
async def test_a_workload_that_cannot_be_recorded_is_refused(
    scene: Scene, payload: dict[str, object], words: str
) -> None:
    await scene.register(CHAIN)

    with pytest.raises(RequestInvalid, match=words):
        await scene.starter.start(request(payload=payload))
    assert await nothing_is_left(scene)


async def test_the_workload_is_rendered_once_and_recorded(scene: Scene) -> None:
    execution = await scene.start(TIMED)
    before = (await scene.of(execution, "playbook.initialized"))[0].workload

    await scene.clock.advance(100)
    scene.rebuild()
    work = await scene.coordinator.load(execution)

    assert work.state.run.workload == before
    assert before["id"] == "job"


async def test_a_start_that_could_not_be_recorded_leaves_nothing(
    scene: Scene, log: ObedientLog
) -> None:
    await scene.register(CHAIN)
    log.failures = [LogUnavailable("away")]

    with pytest.raises(LogUnavailable):
        await scene.starter.start(request())
    await scene.reaper.look()

    assert await nothing_is_left(scene)
    assert not scene.coordinator.neglected


async def test_a_start_whose_answer_got_lost_goes_on(scene: Scene, log: ObedientLog) -> None:
    await scene.register(CHAIN)
    log.losses = [LogUnavailable("away")]
    with pytest.raises(LogUnavailable):
        await scene.starter.start(request(execution_id=GIVEN))

    await scene.reaper.look()
    await scene.coordinator.drain()

    assert await scene.run_to_the_end(GIVEN) == "COMPLETED"
