"""The engine as one process runs it: what it leaves behind, and who may hold the home."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.home import Home
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import HomeInUse, InvariantBroken
from noetl.kernel.ids import ExecutionId
from noetl.runtime.endings import Ending
from noetl.runtime.reaper import Reaper
from noetl.runtime.starting import StartRequest

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: tests/t}\n"
TABLE = HEAD + "workflow: [{step: start, tool: {kind: duckdb, query: CREATE TABLE t AS SELECT 1}}]"
FAILING = HEAD + (
    "workflow: [{step: start, tool: {kind: duckdb, query: CREATE TABLE t AS SELECT 1}, next: bad},"
    ' {step: bad, tool: {kind: python, code: "raise ValueError(1)"}}]'
)


async def run(engine: Engine, text: str) -> tuple[ExecutionId, Ending]:
    registered = await engine.playbooks.register(engine.settings.scope, text)
    request = StartRequest(scope=engine.settings.scope, path=registered.entry.path)
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, 60)
    assert ending is not None
    return execution, ending


async def test_files_of_a_completed_execution_go_and_those_of_a_failed_one_stay(
    tmp_path: Path,
) -> None:
    async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
        completed, ending = await run(engine, TABLE)
        assert ending.status == "COMPLETED"
        failed, ending = await run(engine, FAILING)
        assert ending.status == "FAILED"
        work = tmp_path / "home" / "work"
        assert (work / failed).is_dir()
        while (work / completed).exists():
            await engine.clock.sleep(0.01)


async def test_one_process_holds_the_home(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with open_engine(settings, has_worker=False):
        with pytest.raises(HomeInUse, match="in use by process"):
            async with open_engine(settings):
                pass
    assert Home(tmp_path / "home").holder() is None


async def test_what_was_running_goes_on_in_the_next_process(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with open_engine(settings, has_worker=False) as engine:
        registered = await engine.playbooks.register(settings.scope, TABLE)
        request = StartRequest(scope=settings.scope, path=registered.entry.path)
        execution = await engine.starter.start(request)
    async with open_engine(settings) as engine:
        ending = await engine.coordinator.ending(execution, 60)
    assert ending is not None
    assert ending.status == "COMPLETED"


async def test_a_service_that_fails_ends_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: Reaper) -> None:
        raise InvariantBroken("the reaper broke")

    monkeypatch.setattr(Reaper, "run", broken)
    with pytest.raises(InvariantBroken, match="the reaper broke"):
        async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
            await engine.clock.sleep(30)


async def test_a_home_is_for_nobody_else(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    async with open_engine(Settings(home=str(home))):
        assert home.stat().st_mode & 0o077 == 0
