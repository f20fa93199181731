"""Large results travel by reference, and nobody who reads them can tell."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.adapters.memory.payload_store import MemoryPayloadStore
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import payload_key
from noetl.kernel import canonical_json
from noetl.kernel.errors import NotFinite, PayloadCorrupt, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.runtime.payloads import INLINE_BYTES_MAX, externalize, resolve

SCOPE = Scope("acme", "research")

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e9, 1e9),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)


def result_of(encoded_bytes: int) -> Result:
    """A result whose context takes exactly so many bytes."""
    frame = len(canonical_json.encode({"text": ""}))
    return Result(status="ok", context={"text": "x" * (encoded_bytes - frame)})


@pytest.fixture
def store() -> MemoryPayloadStore:
    return MemoryPayloadStore()


async def test_up_to_the_limit_a_result_stays_where_it_is(store: MemoryPayloadStore) -> None:
    result = result_of(INLINE_BYTES_MAX)

    assert await externalize(result, store, SCOPE) is result
    assert await resolve(result, store, SCOPE) is result
    assert await store.list_stored(SCOPE) == []


async def test_one_byte_above_it_leaves_for_the_store(store: MemoryPayloadStore) -> None:
    result = result_of(INLINE_BYTES_MAX + 1)
    encoded = canonical_json.encode(result.context)

    external = await externalize(result, store, SCOPE)

    (stored,) = await store.list_stored(SCOPE)
    assert stored.sha256 == canonical_json.sha256_hex(encoded)
    assert external == Result(
        status="ok",
        reference=ResultReference(
            type="object_store",
            uri=f"noetl://tenant/acme/org/research/payload/{stored.sha256}",
            sha256=stored.sha256,
            media_type="application/json",
            byte_length=INLINE_BYTES_MAX + 1,
        ),
    )
    assert len(canonical_json.encode(external)) < 400


@settings(max_examples=25)
@given(st.dictionaries(st.text(), plain, max_size=5))
async def test_resolving_gives_back_what_left(context: dict[str, Any]) -> None:
    store = MemoryPayloadStore()
    result = Result(status="ok", context=context)

    external = await externalize(result, store, SCOPE, 10)

    assert await resolve(external, store, SCOPE) == result


async def test_a_result_with_a_reference_of_its_own_keeps_it(store: MemoryPayloadStore) -> None:
    elsewhere = ResultReference(type="object_store", uri="noetl://acme/research/results/1")
    result = msgspec.structs.replace(result_of(INLINE_BYTES_MAX + 1), reference=elsewhere)

    assert await externalize(result, store, SCOPE) is result
    assert await resolve(result, store, SCOPE) is result


async def test_a_payload_that_is_not_json_is_left_by_reference(store: MemoryPayloadStore) -> None:
    table = await store.put(SCOPE, b"ARROW1", "application/vnd.apache.arrow.file")
    reference = ResultReference(
        type="object_store", uri=table.uri, sha256=table.sha256, media_type=table.media_type
    )
    result = Result(status="ok", reference=reference)

    assert await resolve(result, store, SCOPE) is result


async def test_damaged_bytes_are_noticed(store: MemoryPayloadStore) -> None:
    external = await externalize(result_of(200), store, SCOPE, 100)
    assert external.reference is not None
    store._objects[payload_key(SCOPE, external.reference.sha256 or "")] = b"{}"

    with pytest.raises(PayloadCorrupt):
        await resolve(external, store, SCOPE)


async def test_another_tenant_cannot_resolve_it(store: MemoryPayloadStore) -> None:
    other = Scope("other", "research")
    external = await externalize(result_of(200), store, SCOPE, 100)
    await externalize(result_of(200), store, other, 100)

    with pytest.raises(PayloadMissing, match="tenant/acme"):
        await resolve(external, store, other)


async def test_what_json_cannot_carry_is_refused(store: MemoryPayloadStore) -> None:
    with pytest.raises(NotFinite):
        await externalize(Result(status="ok", context={"x": float("nan")}), store, SCOPE)
