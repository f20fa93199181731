"""The numbers of a worker, for Prometheus, on a port of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from noetl.api.metrics_results import ResultNumbers
from noetl.domain.naming.locator import Locality
from noetl.domain.work import WorkerIdentity
from noetl.kernel.errors import SettingInvalid
from noetl.results.numbers import of_reading_and_writing
from noetl.results.store import ResultStore
from noetl.runtime.worker import Worker

_PLACES = {"cluster_id": "cluster", "region": "region", "zone": "zone"}
_RUNTIME = "python"
_NO_POOL = "default"
_ENDS = ("reported", "lost", "stopped", "broken", "refused")


class WorkerNumbers(Collector):
    """Looked up when somebody asks; the worker itself counts only what it counts anyway."""

    def __init__(
        self,
        identity: WorkerIdentity,
        worker: Worker,
        gauges: Callable[[], Mapping[str, float]],
        results: ResultStore,
    ) -> None:
        self._always = {
            "worker_id": identity.worker_id,
            "worker_pool": identity.labels.get("pool", _NO_POOL),
            "runtime": _RUNTIME,
            **_place(identity.locality),
        }
        self._slots = identity.slots
        self._worker = worker
        self._gauges = gauges
        self._results = ResultNumbers(lambda: of_reading_and_writing(results), self._always)

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        yield from self._results.collect()
        free = self._worker.free_slots
        yield self._gauge("noetl_worker_up", "The worker runs.", 1)
        yield self._gauge("noetl_worker_slots_capacity", "Slots in all.", self._slots)
        yield self._gauge("noetl_worker_slots_used", "Slots with work.", self._slots - free)
        yield self._gauge("noetl_worker_slots_free", "Slots without.", free)
        ends = CounterMetricFamily(
            "noetl_worker_work", "Work by what became of it.", labels=(*self._always, "end")
        )
        for end in _ENDS:
            count = getattr(self._worker.counts, end)
            ends.add_metric((*self._always.values(), end), count)
        yield ends
        for name, value in self._gauges().items():
            yield self._gauge(f"noetl_{name}", name.replace("_", " "), value)

    def _gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        family = GaugeMetricFamily(name, text, labels=tuple(self._always))
        family.add_metric(tuple(self._always.values()), value)
        return family


def _place(locality: Locality | None) -> dict[str, str]:
    """As far as the worker was told where it is."""
    told = {label: getattr(locality, level, None) for label, level in _PLACES.items()}
    return {label: name for label, name in told.items() if name is not None}


@contextmanager
def shown(numbers: Collector, port: int) -> Iterator[None]:
    """Under every path, so `/health` answers too. Whoever scrapes comes from elsewhere."""
    registry = CollectorRegistry()
    registry.register(numbers)
    try:
        server, thread = start_http_server(port, addr="0.0.0.0", registry=registry)
    except OSError as error:
        raise SettingInvalid(f"NOETL_WORKER_METRICS_PORT is {port}: {error}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
