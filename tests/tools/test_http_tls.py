"""The http tool over TLS: answers are read the same, and certificates are looked at."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from noetl.servers.process import LOOPBACK
from noetl.tools.http import HttpTool
from tests.tools.http_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.http_fixtures import failure, run
from tests.tools.test_http_plain import answered

REQUESTS = 4


def own_certificate(folder: Path) -> ssl.SSLContext:
    """One that nobody has signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LOOPBACK)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@asynccontextmanager
async def secured(folder: Path, parts: list[bytes]) -> AsyncIterator[tuple[str, list[str]]]:
    """An address, and who has connected to it."""
    peers: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(str(writer.get_extra_info("peername")))
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                for part in parts:
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0, ssl=own_certificate(folder))
    async with server:
        yield "https://{}:{}/".format(*server.sockets[0].getsockname()[:2]), peers


async def test_plain_answers_and_others_are_read_over_one_secured_connection(
    tool: HttpTool, tmp_path: Path
) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    whole = answered(body=b"x" * 40_000)
    for parts, said in (([answered()], "ok"), ([whole[:100], whole[100:]], "x" * 40_000)):
        async with secured(tmp_path, parts) as (url, peers):
            for _ in range(REQUESTS):
                asked = {"url": url, "verify_ssl": False}
                assert (await run(tool, asked)).value["data"] == said
            assert len(peers) == 1
    async with secured(tmp_path, [chunked]) as (url, _):
        assert (await run(tool, {"url": url, "verify_ssl": False})).value["data"] == "ok"


async def test_a_certificate_that_nobody_signed_is_refused(tool: HttpTool, tmp_path: Path) -> None:
    async with secured(tmp_path, [answered()]) as (url, _):
        failed = await failure(tool, {"url": url})
    assert (failed.failure.kind, failed.failure.retryable) == ("connection", False)
    assert "certificate" in failed.failure.message
