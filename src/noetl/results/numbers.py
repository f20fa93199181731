"""The numbers of results, by name and label, for whoever shows them. Looked up when asked for."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from noetl.domain.naming.acceptance import ACCEPTANCES
from noetl.ports.result_cache import CacheStats
from noetl.results import cache_metrics, counts, filling
from noetl.results.places import SOURCES
from noetl.results.store import ResultStore

Kind = Literal["counter", "gauge"]
Labels = tuple[tuple[str, str], ...]

SHARED_MEMORY = "shared_memory"
LAYERS = ("memory", SHARED_MEMORY, "disk")


class Numbers(NamedTuple):
    """One metric: a value for each set of labels."""

    name: str
    text: str
    kind: Kind
    values: dict[Labels, float]


def of_reading_and_writing(store: ResultStore) -> Iterator[Numbers]:
    """Of every process that has results. Blocks: layers count their files."""
    yield from _written(store)
    yield from _read(store)
    stats = [layer.stats() for layer in store.chain.layers]
    yield from _layers(stats)
    for each in stats:
        if each.layer == SHARED_MEMORY:
            yield from _shared_memory(each, store.chain.stats().fallbacks)


def of_the_server(store: ResultStore) -> Iterator[Numbers]:
    """Of the process that takes reports and runs the materializer."""
    known = store.counts
    yield _counter(
        "noetl_result_uri_accept_total",
        "Names of results in reports.",
        "outcome",
        _complete(known.accepted, ACCEPTANCES),
    )
    yield _counter(
        "noetl_result_materializer_total",
        "Results that events name, by what the store had of them.",
        "outcome",
        _complete(known.materialized, filling.OUTCOMES),
    )


def _written(store: ResultStore) -> Iterator[Numbers]:
    known = store.counts
    staged = _complete(known.staged, counts.ENCODINGS)
    staged_bytes = _complete(known.staged_bytes, counts.ENCODINGS)
    yield _counter("noetl_result_staged_total", "Results written.", "encoding", staged)
    yield _counter("noetl_result_staged_bytes_total", "Their bytes.", "encoding", staged_bytes)


def _read(store: ResultStore) -> Iterator[Numbers]:
    chain, resolved = store.chain.stats(), dict(store.counts.resolved)
    yield Numbers(
        "noetl_result_resolve_total",
        "Stored results that were asked for.",
        "counter",
        {
            (("path", path), ("outcome", outcome)): resolved.get((path, outcome), 0)
            for path in counts.PATHS
            for outcome in counts.OUTCOMES
        },
    )
    found = _complete(chain.found, (*LAYERS, *SOURCES))
    yield _counter("noetl_result_reads_total", "Reads by who had the bytes.", "layer", found)
    fetched: dict[Labels, float] = {(): float(chain.fetched_bytes)}
    yield Numbers(
        "noetl_result_fetched_bytes_total", "Bytes fetched from stores.", "counter", fetched
    )
    failures: dict[Labels, float] = {(): float(sum(store.chain.places.failures.values()))}
    yield Numbers(
        "noetl_result_location_failures_total",
        "Answers of stores that sent a reader to another copy, or away.",
        "counter",
        failures,
    )


def _layers(stats: Iterable[CacheStats]) -> Iterator[Numbers]:
    known = {each.layer: each for each in stats}
    hits = {name: each.hits for name, each in known.items()}
    misses = {name: sum(each.misses.values()) for name, each in known.items()}
    evictions = {name: each.evictions for name, each in known.items()}
    yield _counter("noetl_result_cache_hits_total", "Hits of a layer.", "layer", hits)
    yield _counter("noetl_result_cache_misses_total", "Misses of a layer.", "layer", misses)
    yield _counter("noetl_result_cache_evictions_total", "What went.", "layer", evictions)
    in_use: dict[Labels, float] = {
        (("layer", name),): each.bytes_in_use for name, each in known.items()
    }
    yield Numbers("noetl_result_cache_bytes", "Bytes in a layer.", "gauge", in_use)


def _shared_memory(stats: CacheStats, fallbacks: int) -> Iterator[Numbers]:
    for name, value in cache_metrics.ipc_counters(stats, fallbacks).items():
        yield Numbers(name, "Results in shared memory.", "counter", {(): float(value)})
    for name, ratio in cache_metrics.ipc_gauges(stats).items():
        yield Numbers(name, "Results in shared memory.", "gauge", {(): ratio})


def _counter(name: str, text: str, label: str, values: Mapping[str, float]) -> Numbers:
    labelled: dict[Labels, float] = {((label, key),): value for key, value in values.items()}
    return Numbers(name, text, "counter", labelled)


def _complete(values: Mapping[str, int], known: Iterable[str]) -> dict[str, float]:
    """Also what has not happened yet: an alarm cannot be set on a number that is not there."""
    return {**dict.fromkeys(known, 0.0), **dict(values)}
