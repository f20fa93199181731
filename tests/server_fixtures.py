"""Real servers for tests: each starts when a test first asks for it and ends with the session."""

import secrets
import shutil
from collections.abc import Iterator

import pytest

from noetl.servers.postgres import PostgresServer
from noetl.servers.seaweedfs import SeaweedS3Server


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    data_dir = tmp_path_factory.mktemp("postgres")
    with PostgresServer(data_dir) as server:
        yield server
    shutil.rmtree(data_dir)  # pytest would keep it for three sessions


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database of this test's own."""
    name = f"test_{secrets.token_hex(8)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedS3Server]:
    data_dir = tmp_path_factory.mktemp("seaweedfs")
    with SeaweedS3Server(data_dir) as server:
        yield server
    shutil.rmtree(data_dir)


@pytest.fixture
def s3_bucket(s3_server: SeaweedS3Server) -> Iterator[str]:
    """The name of an empty bucket of this test's own."""
    name = f"test-{secrets.token_hex(8)}"
    s3_server.create_bucket(name)
    yield name
    s3_server.delete_bucket(name)
