"""What every test may ask for, and which tests share a process when several run at a time."""

from collections.abc import Iterator

import pytest

pytest_plugins = ["tests.server_fixtures"]

SPARK = "spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files keep together. Spark's own follow each other: two sessions would fill the machine.

    They take longest, so they begin first.
    """
    for item in items:
        group = SPARK if _starts_spark(item) else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: not _starts_spark(item))


def _starts_spark(item: pytest.Item) -> bool:
    return item.path.parent.name == SPARK or SPARK in item.path.stem


@pytest.fixture(scope="session", autouse=True)
def no_spark_unless_asked() -> Iterator[None]:
    """A long loop in a test about something else should not start a JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOETL_STAGE_ENGINE", "local")
        yield
