"""What a stored object names is read from its beginning, or from all of it, and proven."""

import hashlib

import msgspec
import pytest

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import ResultName
from noetl.domain.payload import payload_uri
from noetl.kernel import canonical_json
from noetl.kernel.errors import PayloadCorrupt, PayloadMissing
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.results.dataset import DatasetManifest, DatasetPart, manifest_bytes
from noetl.results.errors import ResultUnreadable
from noetl.results.store import ResultStore
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.results.within import HEAD_BYTES, named_within
from noetl.testing.histories import execution_ids
from tests.memory_results import memory_results

(EXECUTION,) = execution_ids(1)
NAME = ResultName(
    tenant="default", project="default", execution_id=EXECUTION, step=StepName("load")
)
INNER = ResultReference(
    type="object_store",
    uri=msgspec.structs.replace(NAME, task="made").uri,
    sha256="00",
    media_type=FEATHER_MEDIA_TYPE,
)
NESTED = {"at": ["tasks", "made"], "keys": ["value"], "reference": msgspec.to_builtins(INNER)}


async def put(store: ResultStore, data: bytes) -> ResultReference:
    await store.objects.create(store.key_of(NAME, JSON_MEDIA_TYPE), data)
    sha256 = hashlib.sha256(data).hexdigest()
    return ResultReference(
        type="object_store", uri=NAME.uri, sha256=sha256, media_type=JSON_MEDIA_TYPE
    )


async def named(data: bytes) -> list[ResultReference]:
    store = memory_results()
    return await named_within(store, DEFAULT_SCOPE, await put(store, data))


async def test_a_pipeline_names_the_tables_of_its_tasks() -> None:
    order = [f"task_{number}" for number in range(HEAD_BYTES)]  # longer than what is read first
    for names in (["made"], order):
        content = {"order": names, "stored": [NESTED], "tasks": {"made": None}}
        assert await named(canonical_json.encode(content)) == [INNER]
    content = {"stored": [NESTED], "value": {"text": "x" * HEAD_BYTES}}
    assert await named(canonical_json.encode(content)) == [INNER]


async def test_a_dataset_names_its_parts() -> None:
    parts = [DatasetPart(first=0, rows=1, outcomes=[{"index": 0}])]
    parts.append(DatasetPart(first=1, rows=9, reference=INNER))
    for loop in ({}, {"total": 10}):
        assert await named(manifest_bytes(DatasetManifest(loop=loop, parts=parts))) == [INNER]


async def test_values_of_playbooks_that_look_like_names_are_none() -> None:
    pretending = {"stored": [NESTED], "parts": [], "text": '],"stored":['}
    for content in (
        {"value": pretending},
        {"order": ['],"stored":[', "made"], "tasks": {"made": pretending}},
        {"rows": [pretending]},
        {"loop": {"results": [pretending]}},
    ):
        assert await named(canonical_json.encode(content)) == []


async def test_tables_and_payloads_are_not_looked_into() -> None:
    store = memory_results()
    payload = ResultReference(type="object_store", uri=payload_uri(DEFAULT_SCOPE, "00"))
    assert await named_within(store, DEFAULT_SCOPE, INNER) == []
    assert await named_within(store, DEFAULT_SCOPE, payload) == []


async def test_what_is_lost_damaged_or_of_others_is_an_error() -> None:
    store = memory_results()
    data = canonical_json.encode({"order": ["made"], "stored": [NESTED], "tasks": {}})
    reference = await put(store, data)
    with pytest.raises(PayloadMissing):
        await named_within(store, Scope("other", "project"), reference)
    wrong = msgspec.structs.replace(reference, sha256="00")
    with pytest.raises(PayloadCorrupt):
        await named_within(store, DEFAULT_SCOPE, wrong)
    await store.objects.delete(store.key_of(NAME, JSON_MEDIA_TYPE))
    with pytest.raises(PayloadMissing):
        await named_within(store, DEFAULT_SCOPE, reference)
    with pytest.raises(ResultUnreadable):
        await named(b"[1]")
