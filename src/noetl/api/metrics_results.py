"""Numbers of results as families of Prometheus, on a server and on a worker."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from noetl.results.numbers import Numbers

Family = CounterMetricFamily | GaugeMetricFamily


class ResultNumbers(Collector):
    """`always` are labels that every number gets: who tells it."""

    def __init__(
        self, numbers: Callable[[], Iterable[Numbers]], always: Mapping[str, str] | None = None
    ) -> None:
        self._numbers = numbers
        self._always = dict(always or {})

    def describe(self) -> Iterable[Family]:
        """Asked for when it is registered: nothing is counted for that."""
        return ()

    def collect(self) -> Iterable[Family]:
        for each in self._numbers():
            own = next(iter(each.values), ())
            labels = (*self._always, *(name for name, _ in own))
            made = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            family = made(each.name, each.text, labels=labels)
            for named, value in each.values.items():
                family.add_metric((*self._always.values(), *(text for _, text in named)), value)
            yield family
