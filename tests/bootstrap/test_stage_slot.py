"""A slot and its coordinator: whom it waits for, and when it leaves."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.serving import internal_key_of, listening
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.slot_line import SlotLine
from noetl.bootstrap.slot_task import SILENT_SECONDS_MIN, SlotTask, silent_seconds_max
from noetl.bootstrap.stage_slot import SlotDone, run_slot
from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.instant import plus
from noetl.kernel.stage_token import StageGrant, stage_token
from noetl.runtime.starting import StartRequest
from noetl.servers.process import LOOPBACK, free_ports
from noetl.spark.slots import Slot
from tests.unit.runtime.worker_clock import VirtualClock

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rows, path: tests/rows}
workflow:
  - step: each
    loop: {in: "{{ range(4) | list }}", iterator: x, engine: local, spec: {mode: parallel}}
    tool: {kind: noop}
"""


def serve(home: Path, port: int, grant: StageGrant, silent_seconds: float) -> SlotDone:
    settings = Settings(home=str(home))
    task = SlotTask(
        server_url=f"http://{LOOPBACK}:{port}",
        token=stage_token(internal_key_of(settings), grant),
        execution_id=grant.execution_id,
        settings=settings,
        variables={},
        serve_seconds=600,
        silent_seconds_max=silent_seconds,
        base=str(home),
    )
    slot = Slot(tag="t", stage_id=grant.stage_id, number=0, incarnation=0)
    return msgspec.json.decode(run_slot(slot, msgspec.msgpack.encode(task)), type=SlotDone)


def grant_of(engine: Engine, execution: ExecutionId, stage_id: StageId) -> StageGrant:
    expires_at = plus(engine.clock.now(), seconds=600)
    return StageGrant(execution_id=execution, stage_id=stage_id, expires_at=expires_at)


async def test_a_slot_that_nobody_answers_leaves(tmp_path: Path) -> None:
    [port] = free_ports(1)
    async with open_engine(Settings(home=str(tmp_path)), has_worker=False) as engine:
        grant = grant_of(engine, ExecutionId("1"), StageId("2"))
        done = await asyncio.to_thread(serve, tmp_path, port, grant, 0.3)
    assert done == SlotDone(reported=0, lost=0)


async def test_a_coordinator_that_comes_back_in_time_goes_on_with_its_slots(
    tmp_path: Path,
) -> None:
    [port] = free_ports(1)
    async with open_engine(Settings(home=str(tmp_path)), has_worker=False) as engine:
        await engine.playbooks.register(engine.settings.scope, TEXT)
        execution = await engine.starter.start(
            StartRequest(scope=engine.settings.scope, path="tests/rows")
        )
        [stage_id] = (await engine.coordinator.load(execution)).state.stages
        grant = grant_of(engine, execution, stage_id)
        serving = asyncio.create_task(asyncio.to_thread(serve, tmp_path, port, grant, 60))
        await asyncio.wait([serving], timeout=0.5)
        assert not serving.done()
        async with listening(engine, LOOPBACK, port):
            done = await serving
        ending = await engine.coordinator.ending(execution, 10)
    assert done.reported == 1
    assert ending is not None
    assert ending.status == "COMPLETED"


async def test_silence_counts_from_the_last_answer() -> None:
    clock = VirtualClock()
    line = SlotLine("http://coordinator", clock)
    silent = asyncio.create_task(line.until_silent(60))
    await clock.advance(59)
    line.up()
    line.down("it does not answer")
    await clock.advance(59)
    assert not silent.done()
    await clock.advance(1)
    assert silent.done()


@pytest.mark.parametrize(("lease", "silent"), [(1, SILENT_SECONDS_MIN), (60, 180), (600, 1_800)])
def test_a_slot_waits_longer_than_what_it_holds_is_its_own(lease: float, silent: float) -> None:
    assert silent_seconds_max(lease) == silent
