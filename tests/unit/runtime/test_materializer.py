"""What events name is checked once it is in the log, and filled in while somebody has the bytes."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from noetl.adapters.cache.memory import MemoryResultCache
from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.events import CommandCompleted
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.log import EMPTY_STREAM, Append
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.errors import LogReplaced, StoreUnavailable
from noetl.kernel.ids import CommandId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.object_store import ObjectFacts
from noetl.ports.result_cache import Offering
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.places import Place, Places
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.results.tiers import encode
from noetl.results.writer import cache_key
from noetl.runtime.materializer import CONSUMER, Materializer
from noetl.runtime.projector import Projector
from noetl.testing.histories import WORKER, History, begin, execution_ids, source_of
from noetl.wire.codec import seal
from tests.memory_results import PLACEMENT
from tests.unit.runtime.written import Ticking

(EXECUTION,) = execution_ids(1)
ROWS = [{"number": number, "text": "x" * 100} for number in range(2_000)]
NAME = ResultName(
    tenant=DEFAULT_SCOPE.tenant_id,
    project=DEFAULT_SCOPE.organization_id,
    execution_id=EXECUTION,
    step=StepName("load"),
)
KEY = "noetl/env=test/region=here/cell=one/shard="


class Fickle(MemoryObjectStore):
    """A store that may be away."""

    is_away = False
    heads = 0

    async def head(self, key: str) -> ObjectFacts | None:
        self.heads += 1
        if self.is_away:
            raise StoreUnavailable("the bucket does not answer")
        return await super().head(key)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.log = MemoryEventLog(Ticking())
        self.projections = MemoryProjectionStore()
        self.objects, self.replica = Fickle(), MemoryObjectStore()
        self.memory = MemoryResultCache()
        places = Places(
            [Place("primary", self.objects), Place("replica", self.replica, is_replica=True)],
            lambda: 0.0,
        )
        chain = ReadChain([self.memory], places, folder)
        payloads = ObjectPayloadStore(self.objects)
        self.results = ResultStore(self.objects, payloads, PLACEMENT, chain)
        self.materializer = self.another()

    def another(self) -> Materializer:
        return Materializer(self.log, self.projections, self.results)

    async def recorded(self, references: Iterable[ResultReference], times: int = 1) -> None:
        """Events that name these, each so many times."""
        history = History(EXECUTION)
        drafts = [*begin(history)]
        for number, reference in enumerate(references):
            result = Result(status="ok", reference=reference)
            for turn in range(times):
                done = CommandCompleted(worker_id=WORKER, claim=1, result=result, duration_ms=1)
                drafts.append(history.draft(done, command_id=CommandId(f"c{number}/{turn}")))
        sealed = seal(drafts, EMPTY_STREAM, source_of(EXECUTION))
        await self.log.append([Append(DEFAULT_SCOPE, EXECUTION, 0, sealed)])
        projector = Projector(self.log, self.projections)
        while await projector.advance():
            pass

    async def staged(self, name: ResultName = NAME) -> ResultReference:
        reference = (await self.results.record(name, ROWS)).reference
        assert reference is not None
        return reference

    async def caught_up(self) -> None:
        while await self.materializer.advance(2):
            pass

    async def key(self) -> str:
        (facts,) = await self.objects.list_objects("")
        assert facts.key.startswith(KEY)
        return facts.key

    async def data(self, key: str) -> bytes:
        return b"".join([chunk async for chunk in self.objects.read(key)])

    @property
    def outcomes(self) -> dict[str, int]:
        return dict(self.results.counts.materialized)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_what_is_there_is_looked_at_once(scene: Scene) -> None:
    await scene.recorded([await scene.staged()], times=3)
    await scene.caught_up()
    assert scene.outcomes == {"present": 1}
    assert scene.objects.heads == 1
    assert await scene.materializer.unfilled(DEFAULT_SCOPE) == []


async def test_it_goes_on_from_its_own_cursor(scene: Scene) -> None:
    await scene.recorded([await scene.staged()])
    await scene.caught_up()
    cursor = await scene.projections.cursor(CONSUMER)
    assert cursor is not None
    tail = await scene.log.tail(after_position=0)
    assert cursor.position == tail[-1].position
    assert await scene.another().advance() == 0


async def test_what_a_layer_of_the_node_still_has_is_filled_in(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    data = await scene.data(key)
    await scene.results.chain.read(cache_key(NAME, reference), key)  # now memory has it
    await scene.objects.delete(key)
    await scene.recorded([reference])

    await scene.caught_up()

    assert scene.outcomes == {"filled_memory": 1}
    assert await scene.data(key) == data


async def test_what_a_replica_has_is_filled_in(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    data = await scene.data(key)
    await scene.replica.create(key, data)
    await scene.objects.delete(key)
    await scene.recorded([reference])

    await scene.caught_up()

    assert scene.outcomes == {"filled_replica": 1}
    assert await scene.data(key) == data


async def test_a_table_that_only_a_result_names_is_filled_in_and_noted_with_it(
    scene: Scene,
) -> None:
    inner = await scene.staged(msgspec.structs.replace(NAME, task="made"))
    nested = {"at": ["value"], "keys": ["value"], "reference": msgspec.to_builtins(inner)}
    outer = await scene.results.stage(NAME, encode({"stored": [nested], "value": None}))
    keys = [facts.key for facts in await scene.objects.list_objects("")]
    data = {key: await scene.data(key) for key in keys}
    for key in keys:
        await scene.objects.delete(key)
    await scene.recorded([outer])

    await scene.caught_up()  # what it names is not known while it is not there
    assert [each.reference for each in await scene.materializer.unfilled(DEFAULT_SCOPE)] == [outer]

    (key_of_outer,) = [key for key in keys if "made" not in key]
    (key_of_inner,) = [key for key in keys if "made" in key]
    await scene.replica.create(key_of_outer, data[key_of_outer])
    assert await scene.materializer.retry() == 1
    assert [each.reference for each in await scene.materializer.unfilled(DEFAULT_SCOPE)] == [inner]

    await scene.replica.create(key_of_inner, data[key_of_inner])
    assert await scene.materializer.retry() == 1
    assert await scene.materializer.unfilled(DEFAULT_SCOPE) == []
    assert await scene.data(key_of_inner) == data[key_of_inner]


async def test_a_replica_with_other_bytes_fills_in_nothing(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    await scene.replica.create(key, b"x" * (reference.byte_length or 0))
    await scene.objects.delete(key)
    await scene.recorded([reference])

    await scene.caught_up()

    assert scene.outcomes == {"missing": 1}
    assert await scene.objects.head(key) is None


async def test_a_layer_that_let_it_spoil_fills_in_nothing(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    spoilt = memoryview(b"x" * (reference.byte_length or 0))
    assert scene.memory.offer(cache_key(NAME, reference), Offering(view=spoilt))
    await scene.objects.delete(key)
    await scene.recorded([reference])

    await scene.caught_up()

    assert scene.outcomes == {"missing": 1}
    assert await scene.objects.head(key) is None


async def test_what_nobody_has_is_remembered_and_tried_again(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    data = await scene.data(key)
    await scene.objects.delete(key)
    await scene.recorded([reference], times=2)
    await scene.caught_up()
    (unfilled,) = await scene.materializer.unfilled(DEFAULT_SCOPE)
    assert (unfilled.execution_id, unfilled.outcome) == (EXECUTION, "missing")
    assert unfilled.reference == reference
    assert await scene.materializer.unfilled(Scope("acme", "other")) == []

    assert await scene.another().retry() == 0
    assert len(await scene.materializer.unfilled(DEFAULT_SCOPE)) == 1
    await scene.replica.create(key, data)

    assert await scene.another().retry() == 1
    assert await scene.materializer.unfilled(DEFAULT_SCOPE) == []
    assert await scene.data(key) == data


async def test_an_object_of_another_length_is_told_and_left_alone(scene: Scene) -> None:
    reference = await scene.staged()
    key = await scene.key()
    await scene.objects.replace(key, b"cut")
    await scene.recorded([reference])

    await scene.caught_up()

    (unfilled,) = await scene.materializer.unfilled(DEFAULT_SCOPE)
    assert unfilled.outcome == "damaged"
    assert await scene.data(key) == b"cut"


async def test_a_store_that_is_away_loses_nothing(scene: Scene) -> None:
    reference = await scene.staged()
    await scene.recorded([reference])
    scene.objects.is_away = True
    with pytest.raises(StoreUnavailable):
        await scene.caught_up()
    scene.objects.is_away = False

    await scene.caught_up()

    assert scene.outcomes == {"present": 1}


async def test_a_cursor_of_another_log_is_refused(scene: Scene) -> None:
    await scene.recorded([await scene.staged()])
    await scene.caught_up()
    other = Materializer(
        MemoryEventLog(Ticking(), identity="other"), scene.projections, scene.results
    )
    with pytest.raises(LogReplaced):
        await other.advance()
