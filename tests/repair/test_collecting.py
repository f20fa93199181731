"""Only the orphan goes, in a folder and in a bucket, and a killed collection can be run again."""

import msgspec
import pytest

from noetl.bootstrap.repairing import result_collector
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.errors import CollectionRefused
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.snowflake import Parts, compose, decompose
from noetl.runtime.projector import Projector
from noetl.runtime.results_gc import CollectionReport, CollectionRequest
from tests.repair.scene import Scene

DAY_MILLIS = 24 * 60 * 60 * 1000
DELETE = CollectionRequest(dry_run=False)


def orphan_of(scene: Scene, days: int, number: int = 0) -> ExecutionId:
    """An execution that was made some days before the run and left no event."""
    at = decompose(scene.execution).epoch_millis - days * DAY_MILLIS
    return ExecutionId(compose(Parts(at, 1, number)))


def key_of(scene: Scene, execution: ExecutionId, attempt: int = 1) -> str:
    tenant, project = scene.settings.scope
    name = ResultName(
        tenant=tenant,
        project=project,
        execution_id=execution,
        step=StepName("load"),
        attempt=attempt,
    )
    return physical_key(name, scene.settings.placement, "json")


async def keys(scene: Scene) -> set[str]:
    async with scene.platform() as platform:
        return {facts.key for facts in await platform.objects.list_objects("noetl/")}


async def hold(scene: Scene, *added: str) -> None:
    async with scene.platform() as platform:
        for key in added:
            await platform.objects.create(key, b"left over")


async def collect(scene: Scene, request: CollectionRequest) -> CollectionReport:
    async with scene.platform() as platform:
        collector = result_collector(platform)
        return await collector.collect(scene.settings.scope, request)


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.servers)])
def run(request: pytest.FixtureRequest) -> Scene:
    made: Scene = request.getfixturevalue("scene" if request.param == "folder" else "scene_on_s3")
    return made


async def test_only_the_orphan_goes_and_the_run_stays_whole(run: Scene) -> None:
    before = await keys(run)
    old, young = key_of(run, orphan_of(run, 2)), key_of(run, orphan_of(run, 0, 1))
    await hold(run, old, young)

    listed = await collect(run, CollectionRequest())
    assert await keys(run) == before | {old, young}
    assert [each.key for each in listed.candidates if each.verdict == "orphan"] == [old]
    assert (listed.live_candidates, listed.deleted) == (0, 0)

    deleted = await collect(run, DELETE)
    assert (deleted.deleted, deleted.deleted_bytes, deleted.live_candidates) == (1, 9, 0)
    assert await keys(run) == before | {young}
    assert (await run.verify()).is_sound
    await collect(run, CollectionRequest(dry_run=False, grace_seconds=0))
    assert await keys(run) == before


async def test_a_compacted_execution_is_alive(run: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted, orphan = orphan_of(run, 3), orphan_of(run, 4)
    await hold(run, key_of(run, compacted), key_of(run, orphan))

    async def is_archived(execution: ExecutionId) -> bool:
        return execution == compacted

    async with run.platform() as platform:
        monkeypatch.setattr(platform.log, "is_archived", is_archived)
        collector = result_collector(platform)
        report = await collector.collect(run.settings.scope, DELETE)

    assert (report.deleted, report.objects["archived"]) == (1, 1)
    assert key_of(run, compacted) in await keys(run)
    await collect(run, DELETE)


async def test_while_the_projector_lags_nothing_goes(scene: Scene) -> None:
    orphan = key_of(scene, orphan_of(scene, 5))
    await hold(scene, orphan)
    async with scene.platform() as platform:
        await platform.projections.clear()  # as if it had not begun yet

    with pytest.raises(CollectionRefused):
        await collect(scene, CollectionRequest(dry_run=False, grace_seconds=0.001))
    assert orphan in await keys(scene)

    async with scene.platform() as platform:
        projector = Projector(platform.log, platform.projections)
        while await projector.advance():
            pass
    await collect(scene, DELETE)
    assert orphan not in await keys(scene)


async def test_what_attempts_left_goes_only_when_asked_for(run: Scene) -> None:
    """The last effect of a pipeline was stored under its own name, and no event says so."""
    asked = CollectionRequest(dry_run=False, grace_seconds=0)
    listed = await collect(run, asked)
    left = {each.key for each in listed.candidates if each.verdict == "superseded"}
    assert all("results/pair%3Asecond/" in key for key in left)
    assert {key.rpartition(".")[2] for key in left} == {"json", "call"}, "and how it ended"
    assert left <= await keys(run)

    report = await collect(run, msgspec.structs.replace(asked, superseded=True))

    assert (report.deleted, left & await keys(run)) == (len(left), set())
    assert (await run.verify()).is_sound
