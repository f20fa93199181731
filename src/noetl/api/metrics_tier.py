"""Numbers of the upkeep of results: what was collected, verified and brought back."""

from prometheus_client import CollectorRegistry, Counter

from noetl.runtime.results_gc import CollectionReport
from noetl.runtime.results_repair import Verification

REFUSED = "refused"


class TierCounted:
    """The outcomes of collection count objects; a request that was refused counts as one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._collected = Counter(
            "noetl_result_tier_gc",
            "Objects by what collection made of them.",
            ["outcome"],
            registry=registry,
        )
        self._verified = Counter(
            "noetl_worker_result_tier_dr",
            "Objects by what verification and repair made of them.",
            ["outcome"],
            registry=registry,
        )

    def refused(self) -> None:
        self._collected.labels(REFUSED).inc()

    def collected(self, report: CollectionReport) -> None:
        for verdict, objects in report.objects.items():
            self._collected.labels(verdict).inc(objects)
        self._collected.labels("deleted").inc(report.deleted)
        self._collected.labels("live_candidate").inc(report.live_candidates)

    def verified(self, found: Verification) -> None:
        for verdict, objects in found.verdicts.items():
            self._verified.labels(verdict).inc(objects)
        self._verified.labels("repaired").inc(found.repaired)
        self._verified.labels("cannot").inc(found.cannot)
