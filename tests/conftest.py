"""What every test may ask for, and which tests share a process when several run at a time."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["tests.server_fixtures"]

SPARK = "spark"


class SparkInOneProcess(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Files keep together, and all that start Spark: two sessions would fill the machine."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return SPARK if _starts_spark(file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkInOneProcess:
    return SparkInOneProcess(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts Spark takes longest, so it begins first."""
    items.sort(key=lambda item: not _starts_spark(item.nodeid.partition("::")[0]))


def _starts_spark(file: str) -> bool:
    path = PurePath(file)
    return path.parent.name == SPARK or SPARK in path.stem


@pytest.fixture(scope="session", autouse=True)
def no_spark_unless_asked() -> Iterator[None]:
    """A long loop in a test about something else should not start a JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOETL_STAGE_ENGINE", "local")
        yield
