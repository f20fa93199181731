"""Every error of the driver has a treatment, and none of them gets out."""

import inspect

import asyncpg
import pytest
from asyncpg import exceptions

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.postgres.failures import (
    DRIVER_ERRORS,
    Treatment,
    leaves_doubt,
    translated,
    treatment_of,
)
from noetl.adapters.postgres.projection_store import PostgresProjectionStore
from noetl.adapters.system.clock import utc_now
from noetl.kernel.errors import (
    InvariantBroken,
    LogUnavailable,
    NoETLError,
    SettingInvalid,
    StoreUnavailable,
)

DRIVER_CLASSES = [
    cls
    for _, cls in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(cls, Exception) and not issubclass(cls, Warning)
]


@pytest.mark.parametrize("error", DRIVER_CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_of_the_driver_is_mapped(error: type[Exception]) -> None:
    assert issubclass(error, DRIVER_ERRORS)
    assert treatment_of(error) is not None
    code = getattr(error, "sqlstate", None)
    if code is not None:
        # By its own code: one that merely falls through to the last resort is not mapped.
        assert treatment_of(type("Coded", (Exception,), {"sqlstate": code})) is not None


def test_a_code_that_nobody_knows_is_taken_for_a_bug() -> None:
    assert treatment_of(type("New", (exceptions.PostgresError,), {})) is Treatment.BUG


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (exceptions.ConnectionDoesNotExistError("gone"), LogUnavailable),
        (exceptions.SerializationError("again"), LogUnavailable),
        (exceptions.DeadlockDetectedError("again"), LogUnavailable),
        (exceptions.TooManyConnectionsError("full"), LogUnavailable),
        (exceptions.DiskFullError("full"), LogUnavailable),
        (exceptions.OutOfMemoryError("full"), LogUnavailable),
        (exceptions.LockNotAvailableError("busy"), LogUnavailable),
        (exceptions.AdminShutdownError("bye"), LogUnavailable),
        (exceptions.CannotConnectNowError("starting up"), LogUnavailable),
        (exceptions.ReadOnlySQLTransactionError("a standby"), LogUnavailable),
        (exceptions.InterfaceError("connection is closed"), LogUnavailable),
        (ConnectionRefusedError("refused"), LogUnavailable),
        (TimeoutError("late"), LogUnavailable),
        (exceptions.InvalidPasswordError("no"), SettingInvalid),
        (exceptions.InvalidCatalogNameError("no such database"), SettingInvalid),
        (exceptions.InsufficientPrivilegeError("no"), SettingInvalid),
        (exceptions.PostgresSyntaxError("typo"), InvariantBroken),
        (exceptions.UniqueViolationError("twice"), InvariantBroken),
        (exceptions.DataCorruptedError("damaged"), InvariantBroken),
        (asyncpg.DataError("not a number"), InvariantBroken),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_kinds_that_matter(error: Exception, ours: type[NoETLError]) -> None:
    with pytest.raises(ours, match=str(error)) as raised, translated(LogUnavailable):
        raise error
    assert raised.value.retryable is (ours is LogUnavailable)
    assert raised.value.__cause__ is error


def test_only_a_server_that_went_on_serving_leaves_no_doubt() -> None:
    said_no = exceptions.DiskFullError("full")
    said_no.severity_en = "ERROR"
    said_goodbye = exceptions.AdminShutdownError("bye")
    said_goodbye.severity_en = "FATAL"

    assert not leaves_doubt(said_no)
    assert not leaves_doubt(asyncpg.DataError("was never sent"))
    assert leaves_doubt(said_goodbye)
    assert leaves_doubt(exceptions.ConnectionDoesNotExistError("cut"))
    assert leaves_doubt(ConnectionResetError("cut"))
    assert leaves_doubt(TimeoutError("late"))


async def test_a_server_that_is_away_is_unavailable() -> None:
    nobody = "postgresql://noetl@127.0.0.1:1/noetl"
    with pytest.raises(LogUnavailable):
        await PostgresEventLog.open(nobody, utc_now)
    with pytest.raises(StoreUnavailable):
        await PostgresProjectionStore.open(nobody, utc_now)


@pytest.mark.servers
async def test_a_wrong_password_or_database_is_a_setting(postgres_dsn: str) -> None:
    before, _, database = postgres_dsn.rpartition("/")
    with pytest.raises(SettingInvalid, match="does not exist"):
        await PostgresEventLog.open(f"{before}/no_such_{database}", utc_now)
    user, _, host = before.rpartition("@")
    with pytest.raises(SettingInvalid, match="password"):
        await PostgresEventLog.open(f"{user}x@{host}/{database}", utc_now)


@pytest.mark.servers
async def test_a_closed_log_is_unavailable(postgres_dsn: str) -> None:
    log = await PostgresEventLog.open(postgres_dsn, utc_now)
    await log.close()
    await log.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await log.tail()
