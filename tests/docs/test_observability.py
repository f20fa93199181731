"""The page about watching names every metric that there is."""

from pathlib import Path

from prometheus_client import CollectorRegistry

from noetl.api.metrics import Metrics, Watched
from tests.unit.runtime.desk_scene import Scene

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/observability.md").read_text()


def test_every_metric_of_a_server_is_on_the_page() -> None:
    scene = Scene()
    watched = Watched(
        coordinator=scene.coordinator,
        log=scene.log,
        projections=None,  # type: ignore[arg-type]  # nobody looks anything up
        clock=scene.clock,
    )
    names = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in _registry(watched).collect()
    }
    assert len(names) > 30
    assert sorted(name for name in names if f"`{name}" not in PAGE) == []


def _registry(watched: Watched) -> CollectorRegistry:
    return Metrics(watched).registry
