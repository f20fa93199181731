"""Fan-outs from the playbook to the last arc: tries, fan-in, and what the next step makes of it."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import certify
from noetl.runtime.effect_entries import counted
from noetl.runtime.endings import Ending
from noetl.runtime.executions import Executions
from noetl.runtime.replay import ReplayRequest
from noetl.runtime.starting import StartRequest
from noetl.servers.process import LOOPBACK
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.wire.codec import open_stored
from tests.crash.run_checks import check_read_models

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shards, path: tests/shards}
workload: {url: "", shards: 10}
workflow:
  - step: each
    loop:
      in: "{{ range(shards) | list }}"
      iterator: number
      spec: {mode: fanout, engine: local, max_in_flight: 4, fanout: {FANOUT}}
    tool:
      - {name: first, kind: http, method: POST, url: "{{ url }}/first/{{ iter.number }}"}
      - {name: work, kind: http, method: POST, url: "{{ url }}/work/{{ iter.number }}"}
      - {name: value, kind: noop, result: {n: "{{ iter.number }}"}}
    set: {ctx.seen: "{{ fanin.status }}"}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: whole, when: "{{ fanin.status == 'complete' }}"}
        - {step: part, when: "{{ fanin.status == 'partial' and event.name == 'loop.done' }}"}
        - step: none
          when: "{{ event.name == 'call.error' }}"
          set: {ctx.done: "{{ fanin.done }}"}
  - {step: whole, tool: {kind: noop, result: {fanin: "{{ each.fanin }}", of: whole}}}
  - {step: part, tool: {kind: noop, result: {fanin: "{{ each.fanin }}", of: part}}}
  - {step: none, tool: {kind: noop, result: {fanin: "{{ each.fanin }}", of: none}}}
"""


class Target:
    """Refuses some work as often as it was told to."""

    def __init__(self) -> None:
        self.url = ""
        self.bad: Counter[int] = Counter()
        self.told: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        task, number = request.match_info["task"], int(request.match_info["number"])
        self.told[f"{task}/{number}"] += 1
        if task == "work" and self.bad[number] > 0:
            self.bad[number] -= 1
            return web.json_response({"error": "not now"}, status=422)
        return web.json_response({})

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Target"]:
        app = web.Application()
        app.router.add_post("/{task}/{number}", self.answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            self.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()


@dataclass
class Told:
    engine: Engine
    execution: ExecutionId
    ending: Ending
    events: list[RecordedEvent]

    @property
    def result(self) -> Any:
        assert self.ending.result is not None, self.ending
        return plain_result(value_of(self.ending.result))

    def of(self, event_type: str) -> list[Any]:
        return [each.event for each in self.events if each.envelope.event_type == event_type]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
        yield engine


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target().open() as target:
        yield target


async def run(engine: Engine, text: str, **payload: Any) -> Told:
    entry = (await engine.playbooks.register(DEFAULT_SCOPE, text)).entry
    request = StartRequest(
        scope=DEFAULT_SCOPE, path=entry.path, version=entry.version, payload=payload
    )
    return await told(engine, await engine.starter.start(request))


async def told(engine: Engine, execution: ExecutionId) -> Told:
    ending = await engine.coordinator.ending(execution, 60)
    assert ending is not None
    log = engine.platform.log
    events: list[RecordedEvent] = []
    while page := await log.read(execution, after_version=len(events), limit=500):
        events += [open_stored(stored) for stored in page]
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    proof = await certify(log, engine.platform.snapshots, request)
    assert proof.proved
    await check_read_models(engine.platform, execution, proof)
    return Told(engine, execution, ending, events)


def fanout(options: str = "max_shard_retries: 2") -> str:
    return TEXT.replace("FANOUT", options)


async def test_fifty_shards_of_which_two_fail_take_the_arc_of_a_part(
    engine: Engine, target: Target
) -> None:
    target.bad.update({7: 99, 31: 99})
    ended = await run(engine, fanout(), url=target.url, shards=50)

    assert ended.result["of"] == "part"
    fanin = ended.result["fanin"]
    assert (fanin["status"], fanin["total"], fanin["succeeded"]) == ("partial", 50, 48)
    assert (fanin["done"], fanin["failed"], fanin["skipped"]) == (48, 2, 0)
    (completed,) = ended.of("loop.fanin.completed")
    assert (completed.status, completed.done, completed.failed) == ("partial", 48, 2)
    failed = ended.of("loop.shard.failed")
    tries = Counter((each.shard_id, each.shard_attempt, each.final) for each in failed)
    assert tries == Counter(
        (shard, attempt, attempt == 3) for shard in ("7", "31") for attempt in (1, 2, 3)
    )


async def test_ten_shards_of_which_three_fail_once_are_complete(
    engine: Engine, target: Target
) -> None:
    target.bad.update({1: 1, 4: 1, 9: 1})
    ended = await run(engine, fanout(), url=target.url)

    assert (ended.result["of"], ended.result["fanin"]["status"]) == ("whole", "complete")
    assert len(ended.of("loop.shard.done")) == 10
    again = [each for each in ended.of("loop.shard.enqueued") if each.shard_attempt > 1]
    assert sorted((each.shard_id, each.iter_key) for each in again) == [
        (number, number) for number in ("1", "4", "9")
    ]
    assert {target.told[f"first/{number}"] for number in range(10)} == {1}, "effects fire once"
    assert target.told["work/4"] == 2
    platform = engine.platform
    executions = Executions(platform.log, platform.projections, platform.results)
    counts = counted(await executions.effects(DEFAULT_SCOPE, ended.execution))
    assert (counts.fired, counts.repeated, counts.in_doubt) == (target.told.total(), 0, 0)


async def test_a_hundred_shards_are_a_hundred_names_and_no_commands(
    engine: Engine, target: Target
) -> None:
    ended = await run(
        engine, fanout("iter_key: 'key-{{ iter.number }}'"), url=target.url, shards=100
    )

    enqueued = ended.of("loop.shard.enqueued")
    names = {(each.loop_id, each.shard_id, each.iter_key) for each in enqueued}
    assert len(enqueued) == len(names) == 100
    assert {each.iter_key for each in enqueued} == {f"key-{number}" for number in range(100)}
    assert len({each.shard_id for each in ended.of("loop.shard.done")}) == 100
    assert [each.total_shards for each in ended.of("loop.fanout.started")] == [100]
    assert len(ended.of("loop.fanin.completed")) == len(ended.of("loop.done")) == 1
    types = Counter(each.envelope.event_type for each in ended.events)
    assert not [each for each in types if each.startswith("frame.")]
    assert types["command.issued"] == 1  # of the step after it
    out = most = 0
    for each in ended.events:
        out += (each.envelope.event_type == "loop.shard.enqueued") - (
            each.envelope.event_type == "loop.shard.done"
        )
        most = max(most, out)
    assert most <= 4, "more shards were out than may be in flight"


async def test_after_the_first_failed_shard_nothing_new_is_enqueued(
    engine: Engine, target: Target
) -> None:
    target.bad.update({2: 99})
    options = "fail_fast: true, max_shard_retries: 0"
    ended = await run(engine, fanout(options), url=target.url, shards=60)

    fanin = ended.result["fanin"]
    assert (fanin["status"], fanin["failed"]) == ("partial", 1)
    assert fanin["skipped"] == 60 - fanin["done"] - 1 > 40
    assert len(ended.of("loop.shard.enqueued")) == fanin["done"] + 1


async def test_a_part_may_be_a_failure_and_only_failed_shards_are_retried(
    engine: Engine, target: Target
) -> None:
    target.bad.update({3: 2, 5: 2})
    options = "allow_partial: false, max_shard_retries: 1"
    text = fanout(options).replace("event.name == 'call.error'", "false")
    failed = await run(engine, text, url=target.url)
    assert failed.ending.status == "FAILED"
    assert failed.ending.error is not None
    assert "2 of 10 shards failed" in failed.ending.error.message

    await engine.control.retry(DEFAULT_SCOPE, failed.execution)
    ended = await told(engine, failed.execution)

    assert (ended.result["of"], ended.result["fanin"]["done"]) == ("whole", 10)
    assert sorted(each.shard_id for each in ended.of("loop.shard.done")) == sorted(
        map(str, range(10))
    )
    assert [each.status for each in ended.of("loop.fanin.completed")] == ["partial", "complete"]
    assert {target.told[f"first/{number}"] for number in range(10)} == {1}
    assert (target.told["work/3"], target.told["work/4"]) == (3, 1)


async def test_a_failure_knows_the_fan_in(engine: Engine, target: Target) -> None:
    target.bad.update(dict.fromkeys(range(10), 99))
    ended = await run(engine, fanout("max_shard_retries: 0"), url=target.url)

    assert (ended.result["of"], ended.result["fanin"]["status"]) == ("none", "failed")
    (exited,) = [each for each in ended.of("step.exit") if each.step == "each"]
    assert (exited.status, exited.writes) == ("FAILED", {"done": 0})


REDUCE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: reduced, path: tests/reduced}
workload: {shards: 8, numbers: 4000}
workflow:
  - step: shards
    loop:
      in: "{{ range(shards) | list }}"
      iterator: shard
      spec: {mode: fanout, engine: local, max_in_flight: 4}
    tool:
      kind: python
      input: {shard: "{{ iter.shard }}", shards: "{{ shards }}", numbers: "{{ numbers }}"}
      code: |
        size = int(numbers) // int(shards)
        first = int(shard) * size
        result = {"rows": [{"id": n, "square": n * n} for n in range(first, first + size)]}
    next: reduce
  - step: reduce
    tool:
      kind: python
      input: {parts: "{{ shards.results }}"}
      code: |
        rows = [row for part in parts for row in part["rows"]]
        result = {"count": len(rows), "sum": sum(row["square"] for row in rows),
                  "ids": [row["id"] for row in rows][:: 500]}
"""


async def test_the_reduce_of_eight_partitions_is_that_of_one(engine: Engine) -> None:
    eight = await run(engine, REDUCE, shards=8)
    one = await run(engine, REDUCE, shards=1)

    assert eight.result == one.result
    assert eight.result["count"] == 4000
    references = [each.result.reference for each in eight.of("loop.shard.done")]
    assert all(reference is not None for reference in references), "large results lie outside"
