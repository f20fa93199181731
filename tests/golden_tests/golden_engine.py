"""One engine for all golden runs that were asked for, with the servers that they need."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.credential import NewCredential
from noetl.servers.nats import NatsServer
from noetl.servers.postgres import PostgresServer
from tests.golden_tests.golden_api import serving
from tests.golden_tests.golden_runs import (
    Golden,
    GoldenRun,
    goldens,
    hidden_texts,
    registered,
    run,
    store_credentials,
)

DATABASE = "golden_runs"

Login = dict[str, Any]


@dataclass(frozen=True)
class Runs:
    engine: Engine
    home: Path
    by_name: dict[str, GoldenRun | BaseException]
    secrets: list[str]

    def of(self, golden: Golden) -> GoldenRun:
        ended = self.by_name[golden.name]
        if isinstance(ended, BaseException):
            raise ended
        return ended


def asked(request: pytest.FixtureRequest) -> list[Golden]:
    """The runs of the tests that were chosen; where none is chosen, those without a server."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = [call.params.get("golden") for call in calls if call is not None]
    found = [golden for golden in chosen if isinstance(golden, Golden)]
    return found or [golden for golden in goldens() if not golden.needs]


@pytest.fixture(scope="module")
def postgres_login(request: pytest.FixtureRequest) -> Iterator[Login | None]:
    if not any("postgres" in golden.needs for golden in asked(request)):
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    address = urlsplit(server.create_database(DATABASE))
    yield {
        "db_host": address.hostname,
        "db_port": address.port,
        "db_name": DATABASE,
        "db_user": address.username,
        "db_password": unquote(address.password or ""),
    }
    server.drop_database(DATABASE)


@pytest.fixture(scope="module")
def nats_login(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Login | None]:
    if not any("nats" in golden.needs for golden in asked(request)):
        yield None
        return
    folder = tmp_path_factory.mktemp("nats")
    with NatsServer(folder) as server:
        yield {"nats_url": server.url, "nats_user": server.user, "nats_password": server.password}
    shutil.rmtree(folder)


def _credentials(postgres: Login | None, nats: Login | None) -> Iterator[NewCredential]:
    """The same logins under several spellings of their fields."""
    if postgres is not None:
        host, port, database, user, password = postgres.values()
        words = {"hostname": host, "port": str(port), "dbname": database, "username": user}
        address = f"postgresql://{user}:{quote(password)}@{host}:{port}/{database}"
        for name, data in {
            "golden_postgres": postgres,
            "golden_postgres_words": {**words, "password": password, "ssl": "disable"},
            "golden_postgres_address": {"dsn": address},
        }.items():
            yield NewCredential(name=name, type="postgres", data=data)
    if nats is not None:
        words = {name.removeprefix("nats_"): text for name, text in nats.items()}
        yield NewCredential(name="golden_nats", type="nats", data=nats)
        yield NewCredential(name="golden_nats_words", type="nats", data=words)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_login: Login | None,
    nats_login: Login | None,
) -> AsyncIterator[Runs]:
    """All of them at the same time: they must not disturb each other."""
    home = tmp_path_factory.mktemp("golden")
    logins = {"postgres": postgres_login or {}, "nats": nats_login or {}}
    async with serving() as api, open_engine(Settings(home=str(home))) as engine:
        await store_credentials(engine, _credentials(postgres_login, nats_login))
        paths = await registered(engine)
        chosen = asked(request)
        ended = await asyncio.gather(
            *(run(engine, golden, paths[golden.name], api) for golden in chosen),
            return_exceptions=True,
        )
        passwords = (logins["postgres"].get("db_password"), logins["nats"].get("nats_password"))
        yield Runs(
            engine=engine,
            home=home,
            by_name={golden.name: each for golden, each in zip(chosen, ended, strict=True)},
            secrets=[*hidden_texts(), *filter(None, passwords)],
        )
    shutil.rmtree(home)
