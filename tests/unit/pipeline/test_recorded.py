"""Large values travel by reference, and nobody who reads them can tell."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.domain.naming.placement import parse_physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.kernel import canonical_json
from noetl.kernel.errors import NotFinite, ObjectDiffers, PayloadCorrupt, PayloadMissing
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.results.store import ResultStore
from noetl.results.tiers import FEATHER_MEDIA_TYPE
from noetl.templates.layered import plain_result
from noetl.templates.recorded import INLINE_BYTES_MAX, content_of, value_of
from tests.memory_results import memory_results

SCOPE = Scope("acme", "research")

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e9, 1e9),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)


def text_of(encoded_bytes: int) -> str:
    """A value whose content takes exactly so many bytes."""
    return "x" * (encoded_bytes - len(canonical_json.encode(content_of(""))))


NAME = ResultName(
    tenant="acme",
    project="research",
    execution_id=ExecutionId("300000000000000000"),
    step=StepName("load"),
)


@pytest.fixture
def store() -> ResultStore:
    return memory_results()


async def test_up_to_the_limit_a_value_is_in_the_event(store: ResultStore) -> None:
    value = text_of(INLINE_BYTES_MAX)
    result = await store.record(NAME, value)
    assert result.reference is None
    assert value_of(result) == value
    assert await store.objects.list_objects("") == []


async def test_one_byte_above_it_is_stored_before_it_is_named(store: ResultStore) -> None:
    value = text_of(INLINE_BYTES_MAX + 1)
    result = await store.record(NAME, value)
    assert result.reference is not None
    (stored,) = await store.objects.list_objects("")
    assert stored.byte_length == result.reference.byte_length == INLINE_BYTES_MAX + 1
    assert parse_physical_key(stored.key).name == NAME  # type: ignore[union-attr]  # or it fails
    assert len(canonical_json.encode(result)) < 8_192


@given(plain)
@settings(max_examples=50)
async def test_what_is_read_back_is_what_was_recorded(value: Any) -> None:
    store = memory_results()
    result = await store.record(NAME, value, inline_bytes_max=1)
    assert result.reference is not None
    reference = result.reference
    assert await store.content(SCOPE, reference.uri, reference) == content_of(value)
    assert await store.content(SCOPE, reference.uri) == content_of(value)
    assert await store.verify(SCOPE, reference) == reference.byte_length


async def test_another_tenant_finds_nothing(store: ResultStore) -> None:
    result = await store.record(NAME, "secret", inline_bytes_max=1)
    assert result.reference is not None
    with pytest.raises(PayloadMissing):
        await store.content(Scope("other", "research"), result.reference.uri, result.reference)


async def test_what_was_removed_is_missing_and_what_was_changed_is_corrupt(
    store: ResultStore,
) -> None:
    result = await store.record(NAME, "a value", inline_bytes_max=1)
    assert result.reference is not None
    reference = result.reference
    (stored,) = await store.objects.list_objects("")
    await store.objects.replace(stored.key, b'{"value":"a valve"}')
    with pytest.raises(PayloadCorrupt):
        await store.content(SCOPE, reference.uri, reference)
    with pytest.raises(PayloadCorrupt):
        await store.verify(SCOPE, reference)
    await store.objects.delete(stored.key)
    with pytest.raises(PayloadMissing):
        await store.content(SCOPE, reference.uri, reference)
    with pytest.raises(PayloadMissing):
        await store.content(SCOPE, reference.uri)


async def test_a_number_that_is_none_is_refused(store: ResultStore) -> None:
    with pytest.raises(NotFinite):
        await store.record(NAME, {"x": float("nan")})


async def test_a_table_is_stored_as_one_and_read_by_name(store: ResultStore) -> None:
    value = {"status": "ok", "rows": [{"id": n, "name": f"n{n}"} for n in range(5_000)]}
    result = await store.record(NAME, value)
    reference = result.reference
    assert reference is not None
    assert (reference.media_type, reference.row_count) == (FEATHER_MEDIA_TYPE, 5_000)
    assert plain_result(
        value_of(result, {reference.uri: await store.content(SCOPE, reference.uri)})
    )
    stored = await store.open(SCOPE, reference.uri, reference)
    assert stored.look_into(("value", "rows", 1_100, "name")) == "n1100"
    stored.close()


async def test_a_name_has_one_content(store: ResultStore) -> None:
    await store.record(NAME, "x" * 200_000)
    await store.record(NAME, "x" * 200_000)
    with pytest.raises(ObjectDiffers):
        await store.record(NAME, "y" * 200_000)
