"""What every test may ask for, and which tests share a process when several run at a time."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["tests.server_fixtures"]

SPARK, CRASH, REPAIR = "spark", "crash", "repair"
LONGEST_FIRST = (SPARK, CRASH, REPAIR)


class LongOnesApart(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Files keep together, and all that start Spark: two sessions would fill the machine.

    Tests that kill share nothing and take a minute each, so each goes to whoever is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        kind = _kind(file)
        return kind if kind == SPARK else nodeid if kind == CRASH else file

    def _reschedule(self, node: Any) -> None:
        """One test waits behind the one that runs: a second could be had by another process."""
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongOnesApart:
    return LongOnesApart(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: at the end there are small files for all processes."""
    items.sort(key=lambda item: _turn(item.nodeid.partition("::")[0]))


def _turn(file: str) -> int:
    kind = _kind(file)
    return LONGEST_FIRST.index(kind) if kind in LONGEST_FIRST else len(LONGEST_FIRST)


def _kind(file: str) -> str:
    path = PurePath(file)
    return SPARK if SPARK in path.stem else path.parent.name


@pytest.fixture(scope="session", autouse=True)
def no_spark_unless_asked() -> Iterator[None]:
    """A long loop in a test about something else should not start a JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOETL_STAGE_ENGINE", "local")
        yield
