"""The process with the log is killed in the middle of a playbook's job, and comes back."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.domain.events import CommandClaimed
from noetl.kernel.ids import ExecutionId
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.servers.processes import family_of, survivors
from tests.spark.restarting import settings_at
from tests.spark.test_work import until_there
from tests.stages.stage_scene import events_of

pytestmark = pytest.mark.servers

ENDING_SECONDS_MAX = 400.0


async def test_the_job_runs_again_and_nothing_of_the_first_one_is_left(tmp_path: Path) -> None:
    home, where = tmp_path / "home", tmp_path / "where"
    await asyncio.to_thread(where.mkdir)
    command = [sys.executable, "-m", "tests.spark.restarting", str(home), str(where)]
    process = await asyncio.to_thread(subprocess.Popen, command)
    try:
        await asyncio.to_thread(until_there, where / "running")
        family = await asyncio.to_thread(family_of, process.pid)
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
    assert len(family) > 1
    assert await asyncio.to_thread(survivors, family) == []
    execution = ExecutionId(await asyncio.to_thread((where / "execution").read_text))
    await asyncio.to_thread((where / "go").touch)

    async with open_engine(settings_at(home)) as engine:
        ending = await engine.coordinator.ending(execution, ENDING_SECONDS_MAX)
        assert ending is not None
        assert ending.status == "COMPLETED"
        assert ending.result is not None
        assert plain_result(value_of(ending.result)) == [{"id": each} for each in range(4)]
        events = await events_of(engine, execution)
    assert len([event for event in events if isinstance(event, CommandClaimed)]) == 2
