"""One Spark Connect server for all tests that ask for it."""

from collections.abc import Iterator

import pytest

from noetl.servers.java import Java
from noetl.servers.spark_cluster import SparkConnectServer
from tests.servers.processes import family_of, survivors
from tests.spark.driving import system_java


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    return system_java(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def connect_server(
    tmp_path_factory: pytest.TempPathFactory, java: Java
) -> Iterator[SparkConnectServer]:
    folder = tmp_path_factory.mktemp("connect")
    with SparkConnectServer(folder, java) as running:
        yield running
        family = family_of(running.pid)
    assert survivors(family) == []
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["spark-connect.log"]
