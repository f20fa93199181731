"""A process that is killed while a loop claims rows; some rows put further ones on the table."""

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from tests.crash.engine import Deadline, ending_words
from tests.crash.words import tell

ROWS = 36

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: claiming, path: crash/claiming}
workload: {database: ""}
workflow:
  - step: each
    loop:
      cursor:
        kind: sqlite
        database: "{{ database }}"
        claim: |
          UPDATE work SET status = 'claimed', claims = claims + 1 WHERE id IN (
            SELECT id FROM work WHERE status = 'pending'
            ORDER BY id LIMIT {{ __frame_max_rows | int }})
          RETURNING id, page
      iterator: row
      spec:
        mode: cursor
        max_in_flight: 3
        frame: {max_rows: 4, row_concurrency: 2, max_attempts: 100}
    tool:
      - name: save
        kind: sqlite
        database: "{{ database }}"
        query: |
          INSERT INTO work (id, page, status)
          SELECT :id + 1000, 2, 'pending' WHERE :page = 1 AND :id % 3 = 0 ON CONFLICT DO NOTHING;
          INSERT INTO target (id, cycle) VALUES (:id, :cycle) ON CONFLICT (cycle) DO NOTHING;
        params:
          id: "{{ iter.row.id }}"
          page: "{{ iter.row.page }}"
          cycle: "{{ iter.row.id }}/{{ _index }}"
      - {name: value, kind: noop, result: {id: "{{ iter.row.id }}"}}
    next: end
  - step: end
    tool: {kind: noop, result: {ids: "{{ each.results | map(attribute='id') | list }}"}}
"""


def make_table(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "PRAGMA journal_mode = wal;"
            "CREATE TABLE work (id INTEGER PRIMARY KEY, page INTEGER, status TEXT,"
            " claims INTEGER DEFAULT 0);"
            "CREATE TABLE target (id INTEGER, cycle TEXT PRIMARY KEY);"
        )
        connection.executemany(
            "INSERT INTO work (id, page, status) VALUES (?, 1, 'pending')",
            [(number,) for number in range(1, ROWS + 1)],
        )
    connection.close()


def expected_ids() -> list[int]:
    first = range(1, ROWS + 1)
    return [*first, *(number + 1000 for number in first if number % 3 == 0)]


def main(order: dict[str, Any]) -> None:
    asyncio.run(_run(order))
    signal.pause()  # whoever gave the order kills it


async def _run(order: dict[str, Any]) -> None:
    settings = Settings(home=order["home"], python_processes=1, stage_engine="local")
    async with open_engine(settings) as engine:
        if order["appends"]:
            engine.coordinator.listeners.append(Deadline(order["appends"]).count)
        if order["seconds"]:
            asyncio.get_running_loop().call_later(order["seconds"], _die)
        await engine.playbooks.register(settings.scope, TEXT)
        execution = await engine.starter.start(
            StartRequest(
                scope=settings.scope,
                path="crash/claiming",
                payload={"database": order["database"]},
                execution_id=ExecutionId(order["execution"]),
            )
        )
        tell(await ending_words(engine, execution))
    tell({"closed": execution})


def _die() -> None:
    tell({"dying": True})
    os.kill(os.getpid(), signal.SIGKILL)
