"""The PFT playbook on Spark: everything is harvested once, by full frames, each in one task."""

from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.pft import FRAME_ROWS_MEAN_MIN
from benchmarks.pft_log import counted
from benchmarks.pft_run import harvested, prepare
from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.runtime.certificate import certify
from noetl.runtime.replay import ReplayRequest
from tests.examples.test_pft import api

pytestmark = pytest.mark.servers

PATIENTS = 49
MDS_DETAILS = 1_093
ROWS = 5 * PATIENTS + MDS_DETAILS
IN_FLIGHT = 4
"""Frames of a loop at once. Those that meet at the end of a table share the rows that are left."""
COMMAND_EVENTS_MAX = 5 * 4
"""Four steps are no loops; a loop has no commands, whatever rows it has."""


async def test_pft_on_spark(tmp_path: Path, postgres_dsn: str) -> None:
    settings = Settings(
        home=str(tmp_path / "home"), stage_engine="spark", spark_slots=2, spark_memory_mb=512
    )
    with api() as address:
        async with open_engine(settings) as engine:
            await prepare(engine, postgres_dsn)
            execution, result = await harvested(engine, address, (1, PATIENTS))
            assert result == {"status": "ok", "rows": ROWS, "wrong": []}
            counts = await counted(engine.platform.log, execution)
            request = ReplayRequest(scope=settings.scope, execution_id=execution)
            proof = await certify(engine.platform.log, engine.platform.snapshots, request)
    assert counts.faults("spark", ROWS) == {}
    assert counts.claims == counts.spark_dispatches == counts.frames
    assert sorted(map(sum, counts.rows_by_stage.values())) == [*5 * [PATIENTS], MDS_DETAILS]
    details = max(counts.rows_by_stage.values(), key=len)
    assert fmean(sorted(details)[IN_FLIGHT:]) >= FRAME_ROWS_MEAN_MIN
    assert 0 < counts.command_events <= COMMAND_EVENTS_MAX
    assert proof.proved
    assert proof.event_count == counts.events
