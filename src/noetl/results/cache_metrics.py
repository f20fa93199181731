"""The numbers of shared memory under the names that dashboards and alarms know."""

from noetl.ports.result_cache import CacheStats

_PREFIX = "noetl_storage_ipc_"


def ipc_counters(stats: CacheStats, durable_fallbacks: int) -> dict[str, int]:
    """They only rise while a process lives."""
    return {
        f"{_PREFIX}admission_attempts_total": stats.offers,
        f"{_PREFIX}admission_success_total": stats.admissions,
        f"{_PREFIX}admission_failures_total": sum(stats.refusals.values()),
        f"{_PREFIX}read_attempts_total": stats.reads,
        f"{_PREFIX}read_hits_total": stats.hits,
        f"{_PREFIX}read_misses_total": sum(stats.misses.values()),
        f"{_PREFIX}evictions_total": stats.evictions,
        f"{_PREFIX}durable_fallbacks_total": durable_fallbacks,
        # A reader's copy that found no room is how the budget works; a producer's is an alarm.
        "tier15_budget_exhaustion_total": stats.refusals.get("budget", 0),
    }


def ipc_gauges(stats: CacheStats) -> dict[str, float]:
    return {
        f"{_PREFIX}read_hit_ratio": stats.hit_ratio,
        "tier15_bytes_in_use": stats.bytes_in_use,
    }
