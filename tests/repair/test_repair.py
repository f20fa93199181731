"""Objects that are gone or damaged come back as they were, or it is said why not."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from noetl.bootstrap.repairing import open_repairs
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.results import feather
from tests.repair.promises import RepairPromises
from tests.repair.scene import FIRED, Scene


class TestInAFolder(RepairPromises):
    @pytest.fixture
    def run(self, scene: Scene) -> Scene:
        return scene


@pytest.mark.servers
class TestInABucket(RepairPromises):
    @pytest.fixture
    def run(self, scene_on_s3: Scene) -> Scene:
        return scene_on_s3


async def test_another_version_of_arrow_is_named_beside_ours(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (await scene.named())["table/0/0/1@1"]
    before = await scene.bytes_of(table)
    await scene.delete(table)
    with monkeypatch.context() as another:
        another.setattr(feather, "ENCODER", "noetl-feather/2")
        another.setattr(feather, "ARROW_VERSION", "99.0")
        found = await scene.verify(repair=True)
    await scene.write(table, before)

    (finding,) = found.findings
    assert finding.cannot is not None
    assert finding.cannot.startswith("it was written by noetl-feather/1 with Arrow ")
    assert finding.cannot.endswith("and here is noetl-feather/2 with Arrow 99.0")


async def test_healthy_objects_are_never_written(scene: Scene) -> None:
    folder = Path(scene.settings.home) / "payloads"
    lost = (await scene.named())["text/0/0/1@1"]

    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    before = written()
    await scene.delete(lost)
    await scene.verify(repair=True)

    after = written()
    (changed,) = [path for path in after if after[path] != before.get(path)]
    assert str(changed).endswith(str(lost.key))
    assert before.keys() == after.keys()


async def test_nothing_is_left_of_what_was_run_aside(scene: Scene) -> None:
    lost = (await scene.named())["text/0/0/1@1"]
    scratch = Path(scene.settings.home) / "scratch"
    (scratch / "repair-999999999-left").mkdir(parents=True, exist_ok=True)
    await scene.delete(lost)

    assert (await scene.verify(repair=True)).is_sound
    assert list(scratch.glob("repair-*")) == []


async def test_all_executions_of_the_scope_are_looked_at(scene: Scene) -> None:
    lost = (await scene.named())["each/3/0/1@1"]
    await scene.delete(lost)
    async with scene.platform() as platform, open_repairs(scene.settings, platform) as repairs:
        of_others = await repairs.verify(Scope("other", "default"), None)
        found = await repairs.verify(scene.settings.scope, None, repair=True)

    assert (of_others.executions, of_others.objects) == (0, 0)
    assert (found.executions, found.repaired, found.is_sound) == (1, 1, True)


async def test_an_unknown_execution_is_refused_before_anything_is_read(scene: Scene) -> None:
    async with scene.platform() as platform, open_repairs(scene.settings, platform) as repairs:
        for scope, execution in (
            (scene.settings.scope, ExecutionId("12345")),
            (Scope("other", "default"), scene.execution),
        ):
            with pytest.raises(ExecutionNotFound):
                await repairs.verify(scope, [execution], repair=True)


@pytest.fixture(scope="module")
def scene_with_copies(folder: Path) -> Scene:
    settings = Settings(home=str(folder / "near"), result_disk_mb=0, result_memory_mb=0)
    made = Scene(settings, folder / "trace-near")
    asyncio.run(made.run())
    return made


async def test_a_copy_in_shared_memory_brings_back_what_has_effects(
    scene_with_copies: Scene,
) -> None:
    run = scene_with_copies
    lost = (await run.named())["told/0/0/1@1"]
    before = await run.bytes_of(lost)
    async with run.platform() as platform:  # somebody on this node has read it
        await platform.results.content(lost.scope, lost.reference.uri, lost.reference)
        await platform.results.chain.close()
    await run.delete(lost)

    found = await run.verify(repair=True)

    assert [(each.repaired, each.source) for each in found.findings] == [
        (True, "cache:shared_memory")
    ]
    assert await run.bytes_of(lost) == before
    assert run.trace.read_text() == FIRED


async def test_a_replica_brings_back_what_nothing_else_can(scene: Scene, folder: Path) -> None:
    replica = folder / "replica"
    cells = {
        "cells": [
            {
                "name": "local",
                "provider": "file",
                "url": "file:",
                "region": "local",
                "replicas": [{"provider": "file", "url": f"file://{replica}", "region": "far"}],
            }
        ]
    }
    lost = (await scene.named())["told/0/0/1@1"]
    before = await scene.bytes_of(lost)
    place = replica / str(lost.key)
    place.parent.mkdir(parents=True)
    place.write_bytes(before)
    text = msgspec.json.encode(cells).decode()
    near = Scene(
        msgspec.structs.replace(scene.settings, result_cells=text), scene.trace, scene.execution
    )
    await scene.delete(lost)

    found = await near.verify(repair=True)

    (finding,) = found.findings
    assert finding.repaired
    assert (finding.source or "").startswith("replica:")
    assert await scene.bytes_of(lost) == before
