"""A key starts one execution, whoever asks, how often, and after whatever happened in between."""

import asyncio

import pytest

from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.kernel.errors import LogUnavailable, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.runtime import start_keys
from noetl.runtime.projector import Projector
from noetl.runtime.start_keys import KEY_CHARACTERS_MAX, StartedOnce, StartKey, StartKeys
from noetl.runtime.starting import Starter, StartRequest
from noetl.testing.desk_words import CHAIN, types
from tests.unit.runtime.desk_scene import Scene
from tests.unit.runtime.obedient_log import ObedientLog

REQUEST = StartRequest(scope=DEFAULT_SCOPE, path="desk/chain")
FOR_EVER = StartKey(key="order 7")


class Keyed:
    """A scene whose starter knows keys; read models are as far as the test says."""

    def __init__(self) -> None:
        self.log = ObedientLog()
        self.scene = Scene(self.log)
        self.projections = MemoryProjectionStore()
        self._wire()

    def restart(self) -> None:
        self.scene.rebuild()
        self._wire()

    def _wire(self) -> None:
        scene = self.scene
        keys = StartKeys(self.projections, scene.clock, scene.new_id)
        self.starter = Starter(scene.coordinator, lambda: "job", keys=keys)

    async def project(self) -> None:
        projector = Projector(self.log, self.projections)
        while await projector.advance():
            pass

    async def start(self, key: StartKey = FOR_EVER) -> StartedOnce:
        return await self.starter.start_once(REQUEST, key)

    async def started(self) -> set[ExecutionId]:
        return {stored.execution_id for stored in await self.log.tail()}


@pytest.fixture
async def keyed() -> Keyed:
    keyed = Keyed()
    await keyed.scene.register(CHAIN)
    return keyed


async def test_asking_again_gives_the_same_execution(keyed: Keyed) -> None:
    first, again = await keyed.start(), await keyed.start()

    assert again == StartedOnce(first.execution_id, is_duplicate=True)
    assert not first.is_duplicate
    assert await keyed.started() == {first.execution_id}


async def test_of_many_who_ask_at_once_one_starts_it(keyed: Keyed) -> None:
    answers = await asyncio.gather(*(keyed.start() for _ in range(20)))

    assert [answer.is_duplicate for answer in answers].count(False) == 1
    assert {answer.execution_id for answer in answers} == await keyed.started()
    assert len(await keyed.started()) == 1


async def test_the_key_is_known_after_a_restart(keyed: Keyed) -> None:
    first = await keyed.start()
    keyed.restart()
    await keyed.project()

    assert await keyed.start() == StartedOnce(first.execution_id, is_duplicate=True)


async def test_another_key_and_another_scope_are_another_execution(keyed: Keyed) -> None:
    await keyed.start()
    await keyed.project()
    keys = StartKeys(keyed.projections, keyed.scene.clock, keyed.scene.new_id)

    async def start(execution: ExecutionId) -> ExecutionId:
        return execution

    other = await keys.start(Scope("acme", "ops"), FOR_EVER, start)
    assert not other.is_duplicate
    assert not (await keyed.start(StartKey(key="order 8"))).is_duplicate


@pytest.mark.parametrize("restarts", [False, True])
async def test_after_its_window_a_key_starts_anew(keyed: Keyed, restarts: bool) -> None:
    key = StartKey(key="hourly", window_seconds=3_600)
    first = await keyed.start(key)
    if restarts:
        keyed.restart()
        await keyed.project()
    await keyed.scene.clock.advance(3_599)
    within = await keyed.start(key)
    await keyed.scene.clock.advance(2)
    after = await keyed.start(key)
    await keyed.project()
    keyed.restart()

    assert within == StartedOnce(first.execution_id, is_duplicate=True)
    assert after.execution_id != first.execution_id
    assert await keyed.start(key) == StartedOnce(after.execution_id, is_duplicate=True)


@pytest.mark.parametrize("has_landed", [False, True])
async def test_a_start_whose_answer_was_lost_is_not_made_twice(
    keyed: Keyed, has_landed: bool
) -> None:
    trouble = keyed.log.losses if has_landed else keyed.log.failures
    trouble.append(LogUnavailable("gone"))
    with pytest.raises(LogUnavailable):
        await keyed.start()

    again = await keyed.start()

    assert await keyed.started() == {again.execution_id}
    events = await keyed.scene.events(again.execution_id)
    assert types(events).count("playbook.initialized") == 1


async def test_keys_that_the_read_models_do_not_know_are_not_forgotten(
    keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_keys, "REMEMBERED_MAX", 2)
    first = [await keyed.start(StartKey(key=f"order {number}")) for number in range(5)]

    again = [await keyed.start(StartKey(key=f"order {number}")) for number in range(5)]

    assert [each.execution_id for each in again] == [each.execution_id for each in first]
    await keyed.project()
    for number in range(5, 15):
        await keyed.start(StartKey(key=f"order {number}"))
        await keyed.project()
    assert len(keyed.starter._keys._remembered) <= 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("key", "window"), [("", None), ("x" * (KEY_CHARACTERS_MAX + 1), None), ("x", 0.0)]
)
async def test_a_key_that_is_none_is_refused(key: str, window: float | None) -> None:
    with pytest.raises(RequestInvalid):
        StartKey(key=key, window_seconds=window)
