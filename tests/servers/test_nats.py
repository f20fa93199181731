"""The NATS server keeps its streams, asks for its password and leaves nothing behind."""

import socket
from pathlib import Path

import psutil
import pytest
from nats.aio.client import Client
from nats.errors import Error

from noetl.kernel.errors import ServerFailed
from noetl.servers.nats import NatsServer
from noetl.servers.process import LOOPBACK
from tests.servers.processes import family_of, parent_of, survivors

pytestmark = pytest.mark.servers

PARENT = """
import sys
from pathlib import Path
from noetl.servers.nats import NatsServer
with NatsServer(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


async def connected(server: NatsServer, password: str | None = None) -> Client:
    client = Client()
    secret = password or server.password
    try:
        await client.connect(server.url, user=server.user, password=secret, allow_reconnect=False)
    except Error:
        await client.close()  # the library would leave its socket open
        raise
    return client


def listeners(pid: int) -> set[str]:
    found = psutil.Process(pid).net_connections()
    return {item.laddr.ip for item in found if item.status == psutil.CONN_LISTEN}


def ports_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.ports"))


async def test_what_a_stream_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        client = await connected(server)
        jetstream = client.jetstream()
        await jetstream.add_stream(name="kept", subjects=["kept.>"])
        await jetstream.publish("kept.one", b"value")
        family, url = family_of(server.pid), server.url
        addresses = listeners(server.pid)

        server.kill()
        assert survivors(family) == []
        await client.close()

        server.start()
        assert server.url == url
        client = await connected(server)
        message = await client.jetstream().get_msg("kept", seq=1)
        await client.close()
        family = family_of(server.pid)

    assert message.data == b"value"
    assert addresses == {LOOPBACK}
    assert survivors(family) == []
    assert ports_files(tmp_path) == []


async def test_a_guessed_password_is_refused(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        with pytest.raises(Error):
            await connected(server, "guessed")
        command = psutil.Process(server.pid).cmdline()

    assert server.password not in " ".join(command)
    assert (tmp_path / "server.json").stat().st_mode & 0o077 == 0


def test_a_port_that_was_taken_meanwhile_is_left(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        before = server.url
        server.stop()
        with socket.create_server((LOOPBACK, int(before.rsplit(":", 1)[1]))):
            server.start()

        assert server.url != before


def test_there_is_no_address_before_the_first_start(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="before its first start"):
        _ = NatsServer(tmp_path).url


@pytest.mark.crash
def test_it_dies_with_a_killed_parent(tmp_path: Path) -> None:
    with parent_of(PARENT, tmp_path) as (parent, [pid]):
        family = family_of(pid)
        parent.kill()

    assert survivors(family) == []
