"""Repair writes proven bytes or nothing, and what is run again for it fires nothing."""

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.domain.events import PlaybookCompleted
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import ResultName
from noetl.domain.work import Call
from noetl.kernel.errors import PayloadCorrupt
from noetl.kernel.ids import CommandId, ExecutionId, FrameId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.object_store import CHUNK_BYTES
from noetl.ports.tool import ToolCall, ToolResult
from noetl.results.store import ResultStore
from noetl.runtime.results_repair import ResultRepairs, Verification
from noetl.runtime.results_repair_aside import AsideObjectStore
from noetl.runtime.results_repair_copies import Found, Source
from noetl.runtime.results_repair_guard import (
    ClosedDesk,
    ClosedJournal,
    EffectFreeTools,
    NotAgain,
)
from noetl.runtime.results_repair_objects import Named, put_back
from noetl.testing.histories import History, begin, execution_ids
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.runtime.written import Ticking, write

(EXECUTION,) = execution_ids(1)
NAME = ResultName(
    tenant=DEFAULT_SCOPE.tenant_id,
    project=DEFAULT_SCOPE.organization_id,
    execution_id=EXECUTION,
    step=StepName("load"),
)
VALUE = "x" * 3_000_000
"""Three chunks."""


class Scene:
    """A finished run with one large result; its playbook is nobody's concern here."""

    def __init__(self, log: MemoryEventLog, results: ResultStore, reference: ResultReference):
        self.log = log
        self.results = results
        self.reference = reference

    @property
    def key(self) -> str:
        return self.results.key_of(NAME, self.reference.media_type or "")

    async def whole(self) -> bytes:
        return b"".join([chunk async for chunk in self.results.objects.read(self.key)])

    async def verify(self, *sources: Source) -> Verification:
        repairs = ResultRepairs(self.log, self.results, sources)
        return await repairs.verify(DEFAULT_SCOPE, [EXECUTION], repair=bool(sources))

    async def named(self) -> Named:
        found = ResultRepairs(self.log, self.results, ()).named(DEFAULT_SCOPE, EXECUTION)
        return [named async for named in found][-1]


@pytest.fixture
async def scene() -> Scene:
    results = memory_results(MemoryPayloadStore())
    recorded = await results.record(NAME, VALUE)
    assert recorded.reference is not None
    log, history = MemoryEventLog(Ticking()), History(EXECUTION)
    drafts = [*begin(history), history.draft(PlaybookCompleted(result=recorded))]
    await write(log, EXECUTION, drafts, 100)
    return Scene(log, results, recorded.reference)


def gives(data: bytes | None, source: str = "copy", reason: str | None = None) -> Source:
    async def offer(named: Named, /) -> AsyncGenerator[Found]:
        if named.reference.media_type == "application/json":
            yield Found(source, data, reason)

    return offer


async def test_bytes_with_another_digest_never_reach_the_store(scene: Scene) -> None:
    whole = await scene.whole()
    await scene.results.objects.delete(scene.key)

    wrong = whole[:-1] + b"!"
    found = await scene.verify(gives(wrong), gives(None, reason="it is elsewhere"))

    (_playbook, finding) = found.findings
    assert finding.cannot is not None
    assert "should hash to" in finding.cannot
    assert finding.cannot.endswith("; it is elsewhere")
    assert await scene.results.objects.head(scene.key) is None


async def test_the_first_source_with_the_right_bytes_is_named(scene: Scene) -> None:
    whole = await scene.whole()
    await scene.results.objects.replace(scene.key, b"damaged")

    found = await scene.verify(gives(b"other", "far"), gives(whole, "near"), gives(whole, "last"))

    assert [(each.verdict, each.source) for each in found.findings if each.repaired] == [
        ("wrong_length", "near")
    ]
    assert await scene.whole() == whole


async def test_a_copy_that_breaks_off_changes_nothing(scene: Scene) -> None:
    whole = await scene.whole()
    await scene.results.objects.delete(scene.key)
    named = await scene.named()

    async def broken() -> AsyncIterator[bytes]:
        yield whole[:CHUNK_BYTES]
        yield whole[CHUNK_BYTES : 2 * CHUNK_BYTES]

    with pytest.raises(PayloadCorrupt):
        await put_back(scene.results.objects, named, "missing", broken())
    assert await scene.results.objects.head(scene.key) is None


async def test_without_repair_no_source_is_asked(scene: Scene) -> None:
    await scene.results.objects.delete(scene.key)

    found = await scene.verify()

    assert [(each.verdict, each.repaired, each.cannot) for each in found.findings] == [
        ("missing", False, None),  # the playbook, which this history never had
        ("missing", False, None),
    ]
    assert await scene.results.objects.head(scene.key) is None


async def test_a_name_of_another_tenant_is_told_and_never_read() -> None:
    results = memory_results(MemoryPayloadStore())
    uri = f"noetl://stranger/other/results/{EXECUTION}/load/0/0/1@1"
    named = Result(status="ok", reference=ResultReference(type="object_store", uri=uri))
    log, history = MemoryEventLog(Ticking()), History(EXECUTION)
    drafts = [*begin(history), history.draft(PlaybookCompleted(result=named))]
    await write(log, EXECUTION, drafts, 100)

    repairs = ResultRepairs(log, results, [gives(b"theirs")])
    found = await repairs.verify(DEFAULT_SCOPE, [EXECUTION], repair=True)

    assert found.verdicts == {"missing": 1, "foreign": 1}
    assert (found.repaired, found.is_sound) == (0, False)


async def test_what_is_written_aside_hides_nothing_and_leaves_nothing() -> None:
    real, aside = MemoryObjectStore(), MemoryObjectStore()
    await real.create("a/b", b"real")
    store = AsideObjectStore(real, aside)

    await store.create("a/b", b"made again")
    await store.create("a/c", b"new")
    assert b"".join([chunk async for chunk in store.read("a/b")]) == b"made again"
    await store.delete("a/c")
    assert b"".join([chunk async for chunk in real.read("a/b")]) == b"real"

    await store.forget()
    assert (store.written("a/b"), await aside.list_objects("")) == (None, [])
    assert b"".join([chunk async for chunk in store.read("a/b")]) == b"real"
    assert [facts.key for facts in await real.list_objects("")] == ["a/b"]


class Harmless:
    """A tool that says that it has no effect, whatever it is asked for."""

    waits = False

    def has_effect(self, parameters: object) -> bool:
        del parameters
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        return ToolResult(value=call.kind)

    async def close(self) -> None:
        """Nothing to give back."""


class AllHarmless:
    def get(self, kind: str) -> Harmless:
        del kind
        return Harmless()


@pytest.mark.parametrize("kind", ["playbook", "transfer", "wait"])
def test_some_tools_are_never_run_again_although_repeating_them_is_no_harm(kind: str) -> None:
    with pytest.raises(NotAgain, match=kind):
        EffectFreeTools(AllHarmless()).get(kind)


def test_reading_a_consumer_counts_as_an_effect() -> None:
    tool = EffectFreeTools(AllHarmless()).get("nats")
    assert tool.has_effect({"operation": "js_consume", "ack": False})
    assert not tool.has_effect({"operation": "kv_get"})


async def test_a_desk_and_a_journal_that_are_closed_record_nothing() -> None:
    call = Call(task="load")
    with pytest.raises(NotAgain):
        await ClosedDesk().record_call(EXECUTION, CommandId("c"), 1, call)
    with pytest.raises(NotAgain):
        await ClosedJournal().append(EXECUTION, FrameId("1"), [])
    assert await ClosedJournal().read(ExecutionId("1"), FrameId("1")) == []
