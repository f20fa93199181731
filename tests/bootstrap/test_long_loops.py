"""A loop of many rows takes neither memory nor events for each of them."""

from benchmarks.playbooks import ITEMS, in_a_process

EVENTS_MAX = 1_000
MEMORY_MB_MAX = 256.0


def test_a_hundred_thousand_rows_are_few_events_in_bounded_memory() -> None:
    outcome = in_a_process("loop.100k")
    assert ITEMS == 100_000
    assert outcome.events < EVENTS_MAX
    assert outcome.peak_mb - outcome.base_mb < MEMORY_MB_MAX
