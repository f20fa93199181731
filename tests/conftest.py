"""What every test may ask for."""

from collections.abc import Iterator

import pytest

pytest_plugins = ["tests.server_fixtures"]


@pytest.fixture(scope="session", autouse=True)
def no_spark_unless_asked() -> Iterator[None]:
    """A long loop in a test about something else should not start a JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOETL_STAGE_ENGINE", "local")
        yield
