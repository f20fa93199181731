"""Laws of stored results: nothing is lost, and equal contents are equal bytes."""

from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from noetl.kernel import canonical_json
from noetl.kernel.errors import EventInvalid
from noetl.results import feather
from noetl.results.feather import encode_table
from noetl.results.reading import open_stored
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import TablePath, find_table
from noetl.results.tiers import encode
from noetl.templates.lookup import MISSING
from noetl.testing.strategies import plain_values, texts

INTEGERS = st.integers(-(2**70), 2**70) | st.sampled_from([2**63 - 1, 2**63, -(2**63), 0, 1])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ALIKE = st.sampled_from([0, 0.0, -0.0, False, 1, 1.0, True, "", "1", None])
CELLS = plain_values() | INTEGERS | ALIKE
KINDS: tuple[SearchStrategy[Any], ...] = (st.booleans(), INTEGERS, FLOATS, texts(), ALIKE, CELLS)


def drawn_cells(draw: st.DrawFn) -> SearchStrategy[Any]:
    """Cells of one kind, as those of real tables mostly are."""
    kind: SearchStrategy[Any] = draw(st.sampled_from(KINDS))
    shape = draw(st.sampled_from(["plain", "list", "object"]))
    if shape == "list":
        kind = st.lists(kind, max_size=3)
    elif shape == "object":
        kind = st.fixed_dictionaries(dict.fromkeys(draw(st.sets(texts(), max_size=3)), kind))
    return st.none() | kind if draw(st.booleans()) else kind


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(texts(), min_size=1, max_size=4, unique=True))
    kinds = {name: drawn_cells(draw) for name in names}
    return draw(st.lists(st.fixed_dictionaries(kinds), min_size=2, max_size=6))


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(tables())
    value: Any = rows
    if draw(st.booleans()):
        around = draw(st.dictionaries(texts(), plain_values(), max_size=3))
        value = {**around, "rows": rows, "row_count": len(rows)}
        value |= draw(st.sampled_from([{}, {"command_0": {"rows": list(rows)}}, {"more": rows}]))
    return draw(st.sampled_from([{"value": value}, {"tasks": {"a": value}, "order": ["a"]}]))


@given(contents())
def test_a_table_read_back_is_the_content_that_was_written(content: dict[str, Any]) -> None:
    read = read_back(content)

    # Of equal bytes are equal values of equal types: 1, 1.0 and true are told apart.
    assert canonical_json.encode(read) == canonical_json.encode(content)
    assert read == content


@given(contents(), st.randoms(use_true_random=False))
def test_equal_contents_are_equal_bytes_whatever_the_order_of_keys(
    content: dict[str, Any], chance: Random
) -> None:
    again = shuffled(msgspec.json.decode(canonical_json.encode(content)), chance)

    table = table_in(content)

    assert table_in(again) == table
    assert encode_table(again, table) == encode_table(content, table)


@given(contents())
def test_looking_into_a_table_is_looking_into_its_content(content: dict[str, Any]) -> None:
    table = table_in(content)
    with StoredTable(encode_table(content, table).data) as stored:
        for keys, value in everything_in(content):
            assert canonical_json.encode(stored.look_into(keys)) == canonical_json.encode(value)
        for place in table.places:
            assert stored.look_into((*place, stored.length)) is MISSING
            assert stored.look_into((*place, "length")) is MISSING
            assert stored.look_into((*place, 0, "no such column of it")) is MISSING


@given(tables(), st.integers(-8, 8), st.integers(-8, 8), st.integers(1, 3))
def test_a_range_of_rows_is_a_slice_of_the_list(
    rows: list[dict[str, Any]], start: int, stop: int, batch_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feather, "BATCH_ROWS", batch_rows)
        encoded = encode_table({"value": rows}, TablePath(("value",))).data

    with StoredTable(encoded) as stored:
        assert stored.length == len(rows)
        assert stored.rows(start, stop) == rows[start:stop]
        assert [stored.row(at) for at in range(-len(rows), len(rows))] == rows + rows


@given(contents() | st.dictionaries(texts(), plain_values(), max_size=3), st.integers(0, 300))
def test_every_tier_gives_the_same_value(content: dict[str, Any], inline_bytes_max: int) -> None:
    encoded = encode(content, inline_bytes_max)

    stored = open_stored(encoded.data, encoded.media_type)

    assert canonical_json.encode(stored.whole()) == canonical_json.encode(content)
    is_inline = len(canonical_json.encode(content)) <= inline_bytes_max
    assert (encoded.tier == "inline") is is_inline


UNFIT = st.sampled_from([float("nan"), float("inf"), "\ud800", {"\udfff": 1}, [float("-inf")]])


@given(tables(), UNFIT, st.data())
def test_what_json_refuses_a_table_refuses(
    rows: list[dict[str, Any]], unfit: Any, data: st.DataObject
) -> None:
    row = data.draw(st.sampled_from(rows))
    row[data.draw(st.sampled_from(sorted(row)))] = unfit

    with pytest.raises(EventInvalid, match="value"):
        encode_table({"value": rows}, TablePath(("value",)))


def test_the_version_of_arrow_is_the_one_that_writes() -> None:
    assert pa.__version__ == feather.ARROW_VERSION


def table_in(content: dict[str, Any]) -> TablePath:
    table = find_table(content)
    assert table is not None
    return table


def read_back(content: dict[str, Any]) -> dict[str, Any]:
    with StoredTable(encode_table(content, table_in(content)).data) as stored:
        return stored.whole()


def shuffled(value: Any, chance: Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {key: shuffled(value[key], chance) for key in keys}


def everything_in(value: Any, keys: tuple[str | int, ...] = ()) -> Any:
    yield keys, value
    keyed = dict(enumerate(value)) if isinstance(value, list) else value
    for key, item in keyed.items() if isinstance(keyed, dict) else ():
        yield from everything_in(item, (*keys, key))
