"""Snowflakes have fixed bits and rise whatever the clock does."""

from itertools import pairwise

import pytest

from noetl.kernel.snowflake import (
    EPOCH_MILLIS,
    NODE_MAX,
    Parts,
    SnowflakeSequence,
    compose,
    decompose,
    minted_at,
)

NOON = 1_800_000_000_000
LAST_MILLIS = EPOCH_MILLIS + 2**41 - 1

GOLDEN = [
    (Parts(EPOCH_MILLIS, 0, 0), "0"),
    (Parts(EPOCH_MILLIS, 0, 1), "1"),
    (Parts(EPOCH_MILLIS, 1, 0), "4096"),
    (Parts(EPOCH_MILLIS, NODE_MAX, 4095), "4194303"),
    (Parts(EPOCH_MILLIS + 1, 0, 0), "4194304"),
    (Parts(1_767_225_600_000, 1, 0), "264905529753604096"),
    (Parts(1_767_225_600_000, 513, 77), "264905529755701325"),
    (Parts(LAST_MILLIS, NODE_MAX, 4095), "9223372036854775807"),
]


@pytest.mark.parametrize(("parts", "snowflake"), GOLDEN)
def test_bits_are_where_they_always_were(parts: Parts, snowflake: str) -> None:
    assert compose(parts) == snowflake
    assert decompose(snowflake) == parts


def test_an_id_tells_when_it_was_made() -> None:
    assert minted_at("264905529753604096") == "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("millis", [EPOCH_MILLIS - 1, LAST_MILLIS + 1, 0])
def test_a_time_that_41_bits_cannot_hold_is_refused(millis: int) -> None:
    with pytest.raises(ValueError, match="outside the range"):
        compose(Parts(millis, 0, 0))


@pytest.mark.parametrize("node", [-1, NODE_MAX + 1])
def test_a_node_that_10_bits_cannot_hold_is_refused(node: int) -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.1023"):
        SnowflakeSequence(node)


@pytest.mark.parametrize("node", [0, 1, NODE_MAX])
def test_an_id_names_its_node(node: int) -> None:
    assert decompose(SnowflakeSequence(node).next(NOON)).node == node


@pytest.mark.parametrize(
    "clock",
    [
        [NOON] * 5,
        [NOON, NOON - 1, NOON - 60_000, NOON + 1],
        [NOON + step for step in range(5)],
        [NOON, EPOCH_MILLIS, 0, NOON],
        [NOON] * 9_000,
    ],
    ids=["stands still", "steps back", "goes on", "is far off", "overflows the sequence twice"],
)
def test_ids_rise_strictly_when_the_clock(clock: list[int]) -> None:
    sequence = SnowflakeSequence(3)
    made = [int(sequence.next(now)) for now in clock]
    assert all(earlier < later for earlier, later in pairwise(made))


def test_a_full_millisecond_borrows_the_next_one() -> None:
    sequence = SnowflakeSequence(3)
    made = [decompose(sequence.next(NOON)) for _ in range(4_097)]
    assert made[0] == Parts(NOON, 3, 0)
    assert made[4_095] == Parts(NOON, 3, 4_095)
    assert made[4_096] == Parts(NOON + 1, 3, 0)


def test_what_was_borrowed_is_not_handed_out_again() -> None:
    sequence = SnowflakeSequence(3)
    borrowed = [sequence.next(NOON) for _ in range(4_097)][-1]
    assert decompose(borrowed) == Parts(NOON + 1, 3, 0)
    assert decompose(sequence.next(NOON + 1)) == Parts(NOON + 1, 3, 1)
    assert decompose(sequence.next(NOON + 2)) == Parts(NOON + 2, 3, 0)
