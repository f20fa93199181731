"""A process that is killed while its shards are out; some shards fail at their first try."""

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FaninCompleted, ShardDone, ShardFailed
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.wire.codec import open_stored
from tests.crash.engine import Deadline, ending_words
from tests.crash.words import tell

SHARDS = 24

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sharding, path: crash/sharding}
workload: {database: "", shards: 24}
workflow:
  - step: each
    loop:
      in: "{{ range(shards) | list }}"
      iterator: shard
      spec:
        mode: fanout
        max_in_flight: 4
        frame: {max_attempts: 100}
        fanout: {max_shard_retries: 2}
    tool:
      - name: save
        kind: sqlite
        database: "{{ database }}"
        query: INSERT INTO target (shard) VALUES (:shard) ON CONFLICT (shard) DO NOTHING
        params: {shard: "{{ iter.shard }}"}
      - name: tries
        kind: sqlite
        effects: none
        database: "{{ database }}"
        query: |
          UPDATE tries SET count = count + 1 WHERE shard = :shard RETURNING count, shard % 5 AS rest
        params: {shard: "{{ iter.shard }}"}
        spec:
          policy:
            rules:
              - when: "{{ output.rows[0].rest == 0 and output.rows[0].count < 2 }}"
                then: {do: fail}
      - {name: value, kind: noop, result: {shard: "{{ iter.shard }}"}}
    next: end
  - step: end
    tool:
      kind: noop
      result:
        shards: "{{ each.results | map(attribute='shard') | list }}"
        fanin: "{{ each.fanin }}"
"""


def make_tables(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "PRAGMA journal_mode = wal;"
            "CREATE TABLE target (shard INTEGER PRIMARY KEY);"
            "CREATE TABLE tries (shard INTEGER PRIMARY KEY, count INTEGER DEFAULT 0);"
        )
        rows = [(number,) for number in range(SHARDS)]
        connection.executemany("INSERT INTO tries (shard) VALUES (?)", rows)
    connection.close()


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
                path="crash/sharding",
                payload={"database": order["database"]},
                execution_id=ExecutionId(order["execution"]),
            )
        )
        words = await ending_words(engine, execution)
        tell({**words, "shards": await _shard_ends(engine, execution)})
    tell({"closed": execution})


async def _shard_ends(engine: Engine, execution: ExecutionId) -> dict[str, list[str]]:
    """Which shards are done and which tries failed, as the log has it; and how it came together."""
    ends: dict[str, list[str]] = {"done": [], "failed": [], "fanin": []}
    version = 0
    while page := await engine.platform.log.read(execution, after_version=version, limit=500):
        version += len(page)
        for stored in page:
            match open_stored(stored).event:
                case ShardDone(shard_id=shard):
                    ends["done"].append(shard)
                case ShardFailed(shard_id=shard, shard_attempt=attempt):
                    ends["failed"].append(f"{shard}/{attempt}")
                case FaninCompleted(status=status):
                    ends["fanin"].append(status)
                case _:
                    pass
    return ends


def _die() -> None:
    tell({"dying": True})
    os.kill(os.getpid(), signal.SIGKILL)
