"""Journals of frames lie with the payloads, and outlive a home that the payloads outlive."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.journals import open_journals
from noetl.bootstrap.objects import open_objects
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.testing.compliance.frame_journal import MARK
from tests.bootstrap.test_engine import HEAD, run

EXECUTION, FRAME = ExecutionId("7311"), FrameId("7322")
PAYING = HEAD + (
    'workflow: [{step: pay, loop: {in: ["true", "%s"], iterator: word},'
    ' tool: {kind: shell, command: "{{ word }}"}}]'
)


@pytest.mark.parametrize(("is_shared", "found"), [(True, [MARK]), (False, [])])
async def test_a_home_that_is_lost_takes_only_what_lay_in_it(
    tmp_path: Path, is_shared: bool, found: list[object]
) -> None:
    url = (tmp_path / "shared").as_uri() if is_shared else "file:"
    homes = [Settings(home=str(tmp_path / name), payload_url=url) for name in ("old", "new")]
    before, after = (open_journals(each, open_objects(each)).journal for each in homes)
    await before.append(EXECUTION, FRAME, [MARK])

    assert await after.read(EXECUTION, FRAME) == found
    assert await before.read(EXECUTION, FRAME) == [MARK]


async def test_journals_in_a_shared_store_go_with_their_execution(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    settings = Settings(home=str(tmp_path / "home"), payload_url=shared.as_uri())
    async with open_engine(settings) as engine:
        failed, _ = await run(engine, PAYING % "false")
        completed, ending = await run(engine, PAYING % "true")
        assert ending.status == "COMPLETED"
        await engine.journal.append(completed, FRAME, [MARK])  # as if a worker had been lost
        await engine.journals.forget(completed)
        assert await engine.journal.read(completed, FRAME) == []
        kept = {path.parent.parent.name for path in shared.rglob("*.jsonl")}
        assert kept == {failed}
    assert not (tmp_path / "home" / "journals").exists()
