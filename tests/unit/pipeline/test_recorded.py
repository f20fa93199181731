"""Large values travel by reference, and nobody who reads them can tell."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.kernel import canonical_json
from noetl.kernel.errors import NotFinite, PayloadCorrupt, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.pipeline.payloads import as_payload, read_json, recorded
from noetl.templates.recorded import INLINE_BYTES_MAX, content_of, value_of
from tests.memory_payloads import MemoryPayloadStore

SCOPE = Scope("acme", "research")

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e9, 1e9),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)


def text_of(encoded_bytes: int) -> str:
    """A value whose content takes exactly so many bytes."""
    return "x" * (encoded_bytes - len(canonical_json.encode(content_of(""))))


@pytest.fixture
def store() -> MemoryPayloadStore:
    return MemoryPayloadStore()


async def test_up_to_the_limit_a_value_is_in_the_event(store: MemoryPayloadStore) -> None:
    value = text_of(INLINE_BYTES_MAX)
    result = await recorded(value, store, SCOPE)
    assert result.reference is None
    assert value_of(result) == value
    assert await store.list_stored(SCOPE) == []


async def test_one_byte_above_it_is_stored_before_it_is_named(store: MemoryPayloadStore) -> None:
    value = text_of(INLINE_BYTES_MAX + 1)
    result = await recorded(value, store, SCOPE)
    assert result.reference is not None
    (stored,) = await store.list_stored(SCOPE)
    assert (stored.sha256, stored.byte_length) == (result.reference.sha256, INLINE_BYTES_MAX + 1)
    assert len(canonical_json.encode(result)) < 8_192


@given(plain)
@settings(max_examples=50)
async def test_what_is_read_back_is_what_was_recorded(value: Any) -> None:
    store = MemoryPayloadStore()
    result = await recorded(value, store, SCOPE, inline_bytes_max=1)
    assert result.reference is not None
    uri = result.reference.uri
    assert await read_json(store, SCOPE, uri) == content_of(value)


async def test_another_tenant_finds_nothing(store: MemoryPayloadStore) -> None:
    result = await recorded("secret", store, SCOPE, inline_bytes_max=1)
    assert result.reference is not None
    with pytest.raises(PayloadMissing):
        await read_json(store, Scope("other", "research"), result.reference.uri)


async def test_what_was_removed_is_missing_and_what_was_changed_is_corrupt(
    store: MemoryPayloadStore,
) -> None:
    result = await recorded("a value", store, SCOPE, inline_bytes_max=1)
    assert result.reference is not None
    reference = as_payload(result.reference, SCOPE)
    with pytest.raises(PayloadCorrupt):
        await _read_damaged(store, result.reference.uri)
    await store.delete(reference)
    with pytest.raises(PayloadMissing):
        await read_json(store, SCOPE, result.reference.uri)


async def test_a_number_that_is_none_is_refused(store: MemoryPayloadStore) -> None:
    with pytest.raises(NotFinite):
        await recorded({"x": float("nan")}, store, SCOPE)


async def _read_damaged(store: MemoryPayloadStore, uri: str) -> None:
    await store.damage(b"something else")
    await read_json(store, SCOPE, uri)
