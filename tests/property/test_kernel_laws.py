"""Laws of the words everything else is written in."""

from itertools import pairwise
from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from noetl.kernel import canonical_json, instant
from noetl.kernel.errors import TimeInvalid
from noetl.kernel.instant import Instant
from noetl.kernel.snowflake import EPOCH_MILLIS, NODE_MAX, SnowflakeSequence, decompose
from noetl.testing.strategies import instants, plain_objects, plain_values


@given(plain_values())
def test_canonical_json_gives_back_what_it_was_given(value: Any) -> None:
    encoded = canonical_json.encode(value)
    assert msgspec.json.decode(encoded) == value
    assert canonical_json.encode(msgspec.json.decode(encoded)) == encoded
    canonical_json.check_plain(value)


@given(plain_objects(), st.randoms(use_true_random=False))
def test_equal_objects_are_equal_bytes_whatever_the_order_of_keys(
    value: dict[str, Any], chance: Random
) -> None:
    keys = list(value)
    chance.shuffle(keys)
    assert canonical_json.encode({key: value[key] for key in keys}) == canonical_json.encode(value)


@given(st.lists(instants()))
def test_instants_sort_as_text_as_they_do_in_time(moments: list[Instant]) -> None:
    for moment in moments:
        instant.check(moment)
        assert instant.parse(moment) == moment
    assert sorted(moments) == sorted(moments, key=instant.to_datetime)


SHAPES = st.from_regex(r"\A[0-9]{4}[-W0-9]{6}[T ][0-9:]{8}[.,][0-9]{6}[Zz]\Z")


@given(SHAPES | st.text(min_size=27, max_size=27))
def test_only_the_one_form_passes_for_an_instant(text: str) -> None:
    try:
        instant.check(text)
    except TimeInvalid:
        return
    assert instant.parse(text) == text


CLOCKS = st.lists(st.integers(EPOCH_MILLIS, EPOCH_MILLIS + 2**40), min_size=2, max_size=50)


@given(CLOCKS, st.integers(0, NODE_MAX))
def test_ids_rise_whatever_the_clock_does(clock: list[int], node: int) -> None:
    sequence = SnowflakeSequence(node)
    made = [sequence.next(now) for now in clock]
    assert all(int(earlier) < int(later) for earlier, later in pairwise(made))
    assert {decompose(each).node for each in made} == {node}
    assert decompose(made[-1]).epoch_millis >= max(clock)
