"""A loop over a cursor whose frames are claimed by Spark tasks: each from the database itself."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameStarted
from tests.cursors.looping import seen_in
from tests.stages.stage_suite import (
    ended,
    events_of,
    eventually,
    serving,
    started,
    workers_of,
)

ROWS = 200
TEXT = """
workload: {url: "", database: "", rows: 0}
workflow:
  - step: prepare
    tool:
      kind: sqlite
      database: "{{ database }}"
      query: |
        PRAGMA journal_mode = wal;
        CREATE TABLE work (id INTEGER PRIMARY KEY, status TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {{ rows }})
        INSERT INTO work SELECT i, 'pending' FROM n;
    next: each
  - step: each
    loop:
      cursor:
        kind: sqlite
        database: "{{ database }}"
        claim: |
          UPDATE work SET status = 'claimed' WHERE id IN (
            SELECT id FROM work WHERE status = 'pending' ORDER BY id LIMIT {{ __frame_max_rows }})
          RETURNING id
      iterator: row
      engine: spark
      spec: {mode: cursor, max_in_flight: 4, frame: {max_rows: 10, row_concurrency: 5}}
    tool:
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.row.id }}"},
         timeout: 120}
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.row.id }}"}}
      - {name: answer, kind: noop, result: {id: "{{ iter.row.id }}"}}
    next: done
  - step: done
    tool: {kind: noop, result: {ids: "{{ each.results | map(attribute='id') | list }}"}}
"""

pytestmark = pytest.mark.servers


async def test_spark_tasks_claim_rows_and_every_row_is_worked_on_once(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"), stage_engine="spark")
    async with open_engine(settings) as engine, serving() as target:
        given = {"url": target.url, "database": str(tmp_path / "work.db"), "rows": ROWS}
        execution = await started(engine, TEXT, **given)
        await eventually(lambda: _has_slots(engine))
        target.pause_seconds = 0.05
        target.opens.set()
        ending = await ended(engine, execution)
        workers = await workers_of(engine, execution)
        events = await events_of(engine, execution)

    assert ending.status == "COMPLETED", ending.error
    assert sorted(seen_in(ending)["ids"]) == list(range(1, ROWS + 1))
    assert len(target.told) == ROWS
    assert set(target.told.values()) == {1}
    claimed = [each for each in events if isinstance(each, FrameStarted) and each.transaction_id]
    assert len({each.transaction_id for each in claimed}) == len(claimed)
    assert any(worker.startswith("spark/") for worker in workers), workers


def _has_slots(engine: Engine) -> bool:
    return any(seat.worker.serves is not None for seat in engine.coordinator.seats.all())
