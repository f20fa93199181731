"""Chance that can be repeated, and processes that can be killed."""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from noetl.servers.postgres import PostgresServer
from tests.crash.counters import Counters
from tests.crash.victims import Victims

SEED = "NOETL_CRASH_SEED"


@pytest.fixture
def chance() -> Random:
    """The moments of death. Set the variable to the printed seed to draw the same ones again."""
    seed = os.environ.get(SEED) or str(secrets.randbits(32))
    print(f"{SEED}={seed}")
    return Random(seed)


@pytest.fixture(scope="session")
def all_victims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victims]:
    """One zygote for all tests: its imports take longer than many of them."""
    with Victims(tmp_path_factory.mktemp("victims") / "stderr.txt") as victims:
        yield victims


@pytest.fixture
def victims(all_victims: Victims) -> Iterator[Victims]:
    yield all_victims
    all_victims.leave_nobody()


@pytest.fixture
def mortal_server(tmp_path: Path) -> Iterator[PostgresServer]:
    """Not the session's server: other tests need that one alive."""
    data_dir = tmp_path / "postgres"
    with PostgresServer(data_dir) as server:
        yield server
    shutil.rmtree(data_dir)  # pytest would keep it for three sessions


@pytest.fixture
def counters() -> Iterator[Counters]:
    with Counters() as counters:
        yield counters
