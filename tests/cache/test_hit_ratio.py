"""Results that are handed over on a node: most reads hit, with room for half of what is read."""

from pathlib import Path

from benchmarks.shared_memory_hits import FITTING, TARGET, handover
from noetl.adapters.cache.region import HEADER
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.ports.result_cache import Offering
from noetl.testing.compliance.result_cache import key_of
from tests.cache.held_clock import HeldClock

RESULT_BYTES = 4_096
TURNS = 500
LEASE_SECONDS = 0.5
TURN_SECONDS = 0.02
"""Leases of 25 results at a time: a producer that is quicker finds no room, and is told so."""


def content(number: int) -> bytes:
    return number.to_bytes(8, "little") * (RESULT_BYTES // 8)


def test_readers_of_what_was_just_made_hit_more_often_than_the_target(tmp_path: Path) -> None:
    """A turn of the producer, then one of each reader; what is missed is brought back."""
    clock = HeldClock()
    options = SharedMemoryOptions(
        home_id="home",
        node_id="node",
        folder=tmp_path,
        budget_bytes=FITTING * (RESULT_BYTES + HEADER.size),
    )
    layers = {name: SharedMemoryResultCache(options, clock) for name in handover()}
    orders = handover()
    for turn, (made,) in enumerate(orders["producer"][:TURNS]):
        lease_end = clock.later(LEASE_SECONDS)
        offering = Offering(view=memoryview(content(made)), lease_expires_at=lease_end)
        assert layers["producer"].offer(key_of(content(made)), offering)
        for name in sorted(orders.keys() - {"producer"}):
            for number in orders[name][turn]:
                key = key_of(content(number))
                if layers[name].get(key) is None:
                    layers[name].offer(key, Offering(view=memoryview(content(number))))
        clock.pass_seconds(TURN_SECONDS)

    stats = [layer.stats() for name, layer in layers.items() if name != "producer"]
    assert all(each.hit_ratio > TARGET for each in stats), [each.hit_ratio for each in stats]
    assert layers["producer"].stats().bytes_in_use <= options.budget_bytes
