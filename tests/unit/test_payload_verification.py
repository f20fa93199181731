"""Verification says which payloads hold, without ever handing out a body."""

from collections.abc import AsyncIterator

import msgspec

from noetl.domain.events import PlaybookCompleted, StepEntered
from noetl.domain.events.envelope import Draft, RecordedEvent
from noetl.domain.events.values import Result
from noetl.domain.log import EMPTY_STREAM, StoredEvent
from noetl.domain.naming.result_name import ResultName
from noetl.domain.payload import PayloadReference
from noetl.kernel.ids import StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.payload_store import PayloadStore
from noetl.results.tiers import encode
from noetl.runtime.payload_verification import PayloadVerification, verify_payloads
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import open_stored, seal
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results

(EXECUTION,) = execution_ids(1)
SECRET = b"the body of a payload"


class CountingStore(MemoryPayloadStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        self.reads += 1
        return super().get(reference)


async def events_naming(*references: PayloadReference | None) -> AsyncIterator[RecordedEvent]:
    history = History(EXECUTION)
    drafts = [
        history.draft(StepEntered(step=StepName("load"), visit=visit), payload_ref=reference)
        for visit, reference in enumerate(references, start=1)
    ]
    async for event in recorded_from(drafts):
        yield event


async def recorded_from(drafts: list[Draft]) -> AsyncIterator[RecordedEvent]:
    for at, sealed in enumerate(seal(drafts, EMPTY_STREAM, source_of(EXECUTION)), start=1):
        time = Instant("2026-01-01T00:00:00.000000Z")
        yield open_stored(StoredEvent(EXECUTION, at, at, time, sealed.canonical, sealed.checksum))


async def put(store: PayloadStore, data: bytes) -> PayloadReference:
    return await store.put(DEFAULT_SCOPE, data, "text/plain")


async def test_a_sound_history_is_all_resolved() -> None:
    store = CountingStore()
    one, two = await put(store, SECRET), await put(store, b"two")

    found = await verify_payloads(events_naming(one, None, two, one), memory_results(store))

    assert found.summary.all_resolved
    assert (found.summary.total, found.summary.unique_refs) == (3, 2)
    assert store.reads == 2  # each distinct payload once, reported for every occurrence
    assert [fact.byte_length for fact in found.facts] == [21, 3, 21]


async def test_a_missing_payload_is_named_by_its_code() -> None:
    store = MemoryPayloadStore()
    reference = await put(store, SECRET)
    await store.delete(reference)

    found = await verify_payloads(events_naming(reference), memory_results(store))

    assert not found.summary.all_resolved
    assert [(fact.resolved, fact.error) for fact in found.facts] == [(False, "payload_missing")]


async def test_facts_hold_no_bodies() -> None:
    store = MemoryPayloadStore()

    found = await verify_payloads(events_naming(await put(store, SECRET)), memory_results(store))

    assert SECRET.decode() not in repr(found)


async def test_the_report_is_bounded_and_its_summary_is_not() -> None:
    store = MemoryPayloadStore()
    references = [await put(store, bytes([number])) for number in range(9)]

    short = await verify_payloads(events_naming(*references), memory_results(store), facts_max=4)
    whole: PayloadVerification = await verify_payloads(
        events_naming(*references), memory_results(store)
    )

    assert (len(short.facts), short.facts_omitted) == (4, 5)
    assert short.summary == whole.summary


async def test_results_that_left_the_event_are_looked_at_too() -> None:
    store = MemoryPayloadStore()
    large = "x" * 200_000
    name = ResultName(
        tenant=DEFAULT_SCOPE.tenant_id,
        project=DEFAULT_SCOPE.organization_id,
        execution_id=EXECUTION,
        step=StepName("load"),
    )
    small = await memory_results(store).record(name, large)
    assert small.reference is not None
    draft = History(EXECUTION).draft(PlaybookCompleted(result=small))

    sound = await verify_payloads(recorded_from([draft]), memory_results(store))
    (stored,) = await store.objects.list_objects("")
    await store.objects.delete(stored.key)
    lost = await verify_payloads(recorded_from([draft]), memory_results(store))

    assert (sound.summary.total, sound.summary.all_resolved) == (1, True)
    assert [fact.error for fact in lost.facts] == ["payload_missing"]


async def test_another_tenants_payload_is_not_even_read() -> None:
    store = CountingStore()
    theirs = await store.put(Scope("acme", "research"), SECRET, "text/plain")

    found = await verify_payloads(events_naming(theirs), memory_results(store))

    assert [fact.error for fact in found.facts] == ["payload_of_another_scope"]
    assert store.reads == 0


async def test_a_table_that_only_a_result_names_is_verified_with_it() -> None:
    store = MemoryPayloadStore()
    results = memory_results(store)
    step = ResultName(
        tenant="default", project="default", execution_id=EXECUTION, step=StepName("load")
    )
    inner = await results.stage_rows(
        msgspec.structs.replace(step, task="made"), {"rows": [{"n": 1}, {"n": 2}]}
    )
    nested = {"at": ["value"], "keys": ["rows"], "reference": msgspec.to_builtins(inner)}
    outer = await results.stage(step, encode({"stored": [nested], "value": None}))
    ended = PlaybookCompleted(result=Result(status="ok", reference=outer))
    drafts = [History(EXECUTION).draft(ended)]

    sound = await verify_payloads(recorded_from(drafts), results)
    assert [fact.uri for fact in sound.facts] == [outer.uri, inner.uri]
    assert (sound.summary.all_resolved, sound.summary.unique_refs) == (True, 2)

    for facts in await results.objects.list_objects(""):
        if "made" in facts.key:
            await results.objects.delete(facts.key)
    lost = await verify_payloads(recorded_from(drafts), results)
    assert [fact.error for fact in lost.facts] == [None, "payload_missing"]
    assert not lost.summary.all_resolved
