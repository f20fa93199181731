"""Killed in the middle, upkeep leaves nothing half done; the next one ends it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repair.killed import DELETED_BEFORE_DEATH
from tests.repair.scene import FIRED, Scene
from tests.repair.test_collecting import DELETE, collect, hold, key_of, keys, orphan_of

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120


def killed(scene: Scene, what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.repair.killed", what, scene.settings.home, scene.execution],
        cwd=ROOT,
        check=False,
        timeout=PATIENCE_SECONDS,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


async def test_a_killed_collection_is_ended_by_the_next(scene: Scene) -> None:
    before = await keys(scene)
    orphan = orphan_of(scene, 2)
    left = {key_of(scene, orphan, attempt) for attempt in range(1, 11)}
    await hold(scene, *left)

    killed(scene, "gc")
    remaining = await keys(scene) - before
    assert len(remaining) == len(left) - DELETED_BEFORE_DEATH
    assert remaining < left
    assert (await scene.verify()).is_sound

    report = await collect(scene, DELETE)
    assert (report.deleted, await keys(scene)) == (len(remaining), before)


@pytest.mark.parametrize("is_damaged", [False, True], ids=["missing", "damaged"])
async def test_a_killed_repair_leaves_the_object_as_it_was(scene: Scene, is_damaged: bool) -> None:
    lost = (await scene.named())["text/0/0/1@1"]
    before = await scene.bytes_of(lost)
    damaged = b"!" + before[1:]
    if is_damaged:
        await scene.write(lost, damaged)
    else:
        await scene.delete(lost)

    killed(scene, "repair")

    (finding,) = (await scene.verify()).findings
    assert finding.verdict == ("corrupt" if is_damaged else "missing")
    if is_damaged:
        assert await scene.bytes_of(lost) == damaged
    assert (await scene.verify(repair=True)).is_sound
    assert await scene.bytes_of(lost) == before
    assert scene.trace.read_text() == FIRED
    assert list((Path(scene.settings.home) / "scratch").glob("repair-*")) == []
