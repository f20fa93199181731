"""Real servers leave nothing behind, keep what they should keep, and stay on loopback."""

import os
import socket
import stat
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import psutil
import pytest
from obstore.exceptions import PermissionDeniedError
from obstore.store import S3Store

from noetl.kernel.errors import ServerFailed
from noetl.servers import postgres
from noetl.servers.postgres import PostgresServer
from noetl.servers.process import LOOPBACK
from noetl.servers.seaweedfs import SeaweedS3Server
from tests.servers.processes import family_of, parent_of, survivors

pytestmark = pytest.mark.servers

PARENT = """
import sys
from pathlib import Path
from noetl.servers.postgres import PostgresServer
from noetl.servers.seaweedfs import SeaweedS3Server
with PostgresServer(Path(sys.argv[1], "p")) as one, SeaweedS3Server(Path(sys.argv[1], "s")) as two:
    print(one.pid, two.pid, flush=True)
    sys.stdin.read()
"""


def store_of(server: SeaweedS3Server, bucket: str, secret_key: str | None = None) -> S3Store:
    return S3Store(
        bucket,
        endpoint=server.endpoint,
        access_key_id=server.access_key,
        secret_access_key=secret_key or server.secret_key,
        region=server.region,
        client_options={"allow_http": True},
    )


def listeners(pid: int, count: int) -> set[tuple[str, int]]:
    """What a process listens on, once that is so many ports; the last ones open after readiness."""
    deadline = time.monotonic() + 20
    while True:
        found = psutil.Process(pid).net_connections()
        addresses = {item.laddr for item in found if item.status == psutil.CONN_LISTEN}
        if len(addresses) >= count or time.monotonic() > deadline:
            return {(address.ip, address.port) for address in addresses}
        time.sleep(0.01)


def socket_files(ports: set[int]) -> list[Path]:
    paths = Path("/tmp").glob("seaweedfs-*.sock")
    return [path for path in paths if int(path.stem.rsplit("-", 1)[1]) in ports]


async def test_postgres_serves_on_loopback_and_leaves_no_process(tmp_path: Path) -> None:
    with PostgresServer(tmp_path) as server:
        family = family_of(server.pid)
        connection = await asyncpg.connect(server.dsn)  # a client must not hold up the stop
        backends = family_of(server.pid)
        addresses = listeners(server.pid, 1)

    assert len(backends) > len(family) > 1
    assert [host for host, _ in addresses] == [LOOPBACK]
    assert survivors(backends) == []
    connection.terminate()


def test_the_folder_above_the_data_stays_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    with PostgresServer(tmp_path / "data"):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.crash
async def test_committed_rows_survive_a_killed_postgres(tmp_path: Path) -> None:
    with PostgresServer(tmp_path) as server:
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("CREATE TABLE kept (number int)")
        await connection.execute("INSERT INTO kept VALUES (1), (2)")
        family, dsn = family_of(server.pid), server.dsn

        server.kill()
        assert survivors(family) == []
        connection.terminate()

        server.start()
        assert server.dsn == dsn
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("SELECT sum(number) FROM kept") == 3
        await connection.close()


async def test_postgres_is_durable_and_asks_for_its_password(
    postgres_server: PostgresServer,
) -> None:
    connection = await asyncpg.connect(postgres_server.dsn)
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await connection.fetchval(f"SHOW {setting}") == "on"
    await connection.close()

    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(postgres_server.dsn, password="guessed")


def test_a_port_that_was_taken_meanwhile_is_left(tmp_path: Path) -> None:
    with PostgresServer(tmp_path) as server:
        before = server.dsn
        server.stop()
        taken = int(before.rsplit(":", 1)[1].split("/")[0])
        with socket.create_server((LOOPBACK, taken)):
            server.start()

        assert server.dsn != before


def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with PostgresServer(tmp_path) as server:
        with pytest.raises(ServerFailed, match=r'lock file "postmaster\.pid" already exists'):
            PostgresServer(tmp_path).start()
        with pytest.raises(ServerFailed, match="runs already"):
            server.start()


def test_postgres_refuses_a_name_that_is_not_plain(postgres_server: PostgresServer) -> None:
    with pytest.raises(ServerFailed, match="takes no database name"):
        postgres_server.create_database('x"; DROP DATABASE postgres')
    with pytest.raises(ServerFailed, match="already exists"):
        postgres_server.create_database("postgres")


async def test_each_test_has_an_empty_database(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute("CREATE TABLE mine ()")
    await connection.close()

    other = await asyncpg.connect(postgres_server.create_database("another"))
    assert await other.fetchval("SELECT to_regclass('mine')") is None
    postgres_server.drop_database("another")  # although a client is connected
    other.terminate()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user")
async def test_root_without_namespaces_becomes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_user_namespace", list)
    # Not in pytest's folder: nobody may not pass through it.
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with PostgresServer(Path(folder, "data")) as server:
            assert psutil.Process(server.pid).uids().effective == 65534
            connection = await asyncpg.connect(server.dsn)
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()


async def test_an_object_put_is_the_object_got(s3_server: SeaweedS3Server, s3_bucket: str) -> None:
    store = store_of(s3_server, s3_bucket)
    body = os.urandom(100_000)

    await store.put_async("a/b.bin", body)

    assert bytes(await (await store.get_async("a/b.bin")).bytes_async()) == body
    assert [item["path"] for item in await store.list().collect_async()] == ["a/b.bin"]
    with pytest.raises(PermissionDeniedError):
        await store_of(s3_server, s3_bucket, "guessed").get_async("a/b.bin")


def test_seaweedfs_keeps_objects_stays_on_loopback_and_leaves_nothing(tmp_path: Path) -> None:
    server = SeaweedS3Server(tmp_path)
    with server:
        server.create_bucket("kept")
        store_of(server, "kept").put("name", b"value")
        family, addresses = family_of(server.pid), listeners(server.pid, 10)
        server.kill()
        assert survivors(family) == []

        server.start()
        assert bytes(store_of(server, "kept").get("name").bytes()) == b"value"
        family = family_of(server.pid)

    assert survivors(family) == []
    assert {host for host, _ in addresses} == {LOOPBACK}
    ports = {port for _, port in addresses}
    assert len(ports) == 10
    assert socket_files(ports) == []


@pytest.mark.crash
def test_servers_die_with_a_killed_parent(tmp_path: Path) -> None:
    with parent_of(PARENT, tmp_path) as (parent, pids):
        family = [member for pid in pids for member in family_of(pid)]
        ports = {port for _, port in listeners(pids[1], 10)}
        parent.kill()

    assert len(family) > 2
    assert survivors(family) == []
    for path in socket_files(ports):  # nobody was left who could have removed them
        path.unlink()
