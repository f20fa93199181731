"""Settings -> adapters. Changing the profile changes settings only."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from noetl.adapters.encryption.vault import AesVault
from noetl.adapters.sqlite.catalog import SqliteCatalog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.credential_store import SqliteCredentialStore
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.adapters.sqlite.snapshot_store import SqliteSnapshotStore
from noetl.adapters.system.chance import random_bytes
from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.bootstrap.home import PRIVATE, check_writable, home_refused
from noetl.bootstrap.objects import open_objects
from noetl.bootstrap.results import open_results
from noetl.bootstrap.secret_key import load_key
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import LogMissing, SettingInvalid
from noetl.kernel.instant import Instant
from noetl.ports.catalog import Catalog
from noetl.ports.credential_store import CredentialStore
from noetl.ports.event_log import EventLog
from noetl.ports.object_store import ObjectStore
from noetl.ports.payload_store import PayloadStore
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.results.store import ResultStore

_TABLES = (
    "catalog",
    "credential",
    "event",
    "log_identity",
    "projection",
    "projection_snapshot",
)


class Platform(msgspec.Struct, frozen=True):
    """What a program stands on. Log and objects are the truth; the rest can be rebuilt."""

    log: EventLog
    objects: ObjectStore
    results: ResultStore  # in the objects, by their names
    payloads: PayloadStore  # in the objects, by their digests
    projections: ProjectionStore
    snapshots: SnapshotStore
    catalog: Catalog
    credentials: CredentialStore
    clock: Callable[[], Instant]
    new_id: Callable[[], str]


@asynccontextmanager
async def open_platform(settings: Settings, *, create: bool = True) -> AsyncIterator[Platform]:
    """The stores that the settings name, closed again at the end.

    Without `create` an embedded log must be there already: looking at one never makes one.
    """
    async with AsyncExitStack() as stack:
        objects = open_objects(settings)
        stack.push_async_callback(objects.close)
        results = await stack.enter_async_context(open_results(settings, objects))
        if settings.log_url == "sqlite:" and create:
            yield await _embedded(settings, results, stack)
        elif settings.log_url == "sqlite:":
            yield await _attached(settings, results, stack)
        elif settings.log_url.startswith(("postgresql://", "postgres://")):
            yield await _postgres(settings, results, stack)
        else:
            raise SettingInvalid(
                f"NOETL_LOG_URL is {settings.log_url!r}; use sqlite: or postgresql://user@host/name"
            )


async def _embedded(settings: Settings, results: ResultStore, stack: AsyncExitStack) -> Platform:
    try:
        settings.log_path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise home_refused(settings.log_path.parent, error) from error
    file = SqliteFile(settings.log_path)
    stack.push_async_callback(file.close)
    new_id = SnowflakeIds(settings.id_node).new_id
    return Platform(
        await SqliteEventLog.open(file, utc_now),
        results.objects,
        results,
        results.payloads,
        await SqliteProjectionStore.open(file, utc_now),
        await SqliteSnapshotStore.open(file),
        await SqliteCatalog.open(file, utc_now, new_id),
        await SqliteCredentialStore.open(file, _vault(settings), utc_now, new_id),
        utc_now,
        new_id,
    )


async def _attached(settings: Settings, results: ResultStore, stack: AsyncExitStack) -> Platform:
    path = settings.log_path
    if not path.is_file() or path.stat().st_size == 0:
        raise LogMissing(str(path.absolute()))
    check_writable(path)
    file = SqliteFile(path)
    stack.push_async_callback(file.close)
    if not await file.has_tables(*_TABLES):
        raise LogMissing(str(path.absolute()))
    new_id = SnowflakeIds(settings.id_node).new_id
    return Platform(
        SqliteEventLog(file, utc_now),
        results.objects,
        results,
        results.payloads,
        SqliteProjectionStore(file, utc_now),
        SqliteSnapshotStore(file),
        SqliteCatalog(file, utc_now, new_id),
        SqliteCredentialStore(file, _vault(settings), utc_now, new_id),
        utc_now,
        new_id,
    )


async def _postgres(settings: Settings, results: ResultStore, stack: AsyncExitStack) -> Platform:
    try:
        from noetl.adapters.postgres.catalog import PostgresCatalog
        from noetl.adapters.postgres.credential_store import PostgresCredentialStore
        from noetl.adapters.postgres.event_log import PostgresEventLog
        from noetl.adapters.postgres.pool import PostgresPool
        from noetl.adapters.postgres.projection_store import PostgresProjectionStore
        from noetl.adapters.postgres.snapshot_store import PostgresSnapshotStore
    except ModuleNotFoundError as error:
        raise SettingInvalid("PostgreSQL needs the extra: pip install 'noetl[postgres]'") from error
    pool = PostgresPool(settings.log_url)
    stack.push_async_callback(pool.close)
    try:
        log = await PostgresEventLog.open(pool, utc_now)
    except ValueError as error:  # how the driver says that it cannot read the address
        raise SettingInvalid(f"NOETL_LOG_URL cannot be read: {error}") from error
    new_id = SnowflakeIds(settings.id_node).new_id
    return Platform(
        log,
        results.objects,
        results,
        results.payloads,
        await PostgresProjectionStore.open(pool, utc_now),
        await PostgresSnapshotStore.open(pool),
        await PostgresCatalog.open(pool, utc_now, new_id),
        await PostgresCredentialStore.open(pool, _vault(settings), utc_now, new_id),
        utc_now,
        new_id,
    )


def _vault(settings: Settings) -> AesVault:
    return AesVault(load_key(Path(settings.home), settings.secret_key), random_bytes)
