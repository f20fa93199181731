"""A server and a worker, killed in turns: the one that lives waits for the one that comes back."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.ids import ExecutionId
from noetl.servers.process import free_ports
from tests.crash.counters import Counters
from tests.crash.mixed import expected
from tests.crash.mixed_checks import check_mixed, check_whole_log
from tests.crash.victims import Victims, Word

KILLS = 100
KILLS_PER_EXECUTION_MAX = 12
LIFE_SECONDS_MAX = 0.6

pytestmark = pytest.mark.crash


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Victims]:
    with Victims(tmp_path / "worker.txt") as workers:
        yield workers


class Pair:
    def __init__(self, servers: Victims, workers: Victims, order: dict[str, Any]) -> None:
        self._servers = servers
        self._workers = workers
        self._order = order
        self._heard: list[Word] = []
        self._has_server = True
        servers.start("serve", **order)
        workers.start("work", **order)

    @property
    def end(self) -> Word | None:
        return next((word for word in self._heard if "over" in word), None)

    def kill_server(self) -> None:
        self._heard += self._servers.kill()
        self._has_server = self.end is None
        if self._has_server:
            self._servers.start("serve", **self._order)

    def kill_worker(self) -> None:
        self._workers.kill()
        self._workers.start("work", **self._order)

    def finish(self) -> Word:
        while self.end is None:
            self._heard += self._servers.hear(1)
        return self.end

    def stop(self) -> None:
        self._workers.kill()
        if self._has_server:
            self._servers.kill()


def test_they_bring_an_execution_to_its_end(
    tmp_path: Path, victims: Victims, workers: Victims, chance: Random, counters: Counters
) -> None:
    home, trace = tmp_path / "home", tmp_path / "trace"
    ids, [port] = SnowflakeIds(7), free_ports(1)
    kills = executions = 0
    while kills < KILLS:
        execution = ExecutionId(ids.new_id())
        executions += 1
        order: dict[str, Any] = {"home": str(home), "url": counters.url, "trace": str(trace)}
        pair = Pair(victims, workers, {**order, "port": port, "execution": execution})
        for _ in range(chance.randint(1, KILLS_PER_EXECUTION_MAX)):
            time.sleep(chance.uniform(0, LIFE_SECONDS_MAX))
            chance.choice([pair.kill_server, pair.kill_worker])()
            kills += 1
            if pair.end is not None:
                break
        end = pair.finish()
        pair.stop()
        assert (end["over"], end["result"]) == ("COMPLETED", expected()), end
        asyncio.run(check_mixed(home, trace, execution, counters))
    print(f"{kills} kills in {executions} executions")
    asyncio.run(check_whole_log(home))
