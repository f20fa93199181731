"""A wire between a client and a server that can be cut at a chosen moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

CHUNK_BYTES = 65_536


class CuttingProxy:
    """Passes bytes on until `cut_request` or `cut_answer` says that this is the moment."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: list[asyncio.StreamWriter] = []
        self.cut_request: Callable[[bytes], bool] = lambda _: False
        self.cut_answer_to: Callable[[bytes], bool] = lambda _: False
        self.refuses = False
        self.requests = 0
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.refuses:
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        self._writers.append(server_writer)
        doomed = asyncio.Event()
        there = asyncio.create_task(self._requests(reader, server_writer, doomed))
        back = asyncio.create_task(self._answers(server_reader, writer, doomed))
        await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await task
        writer.close()
        server_writer.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            self.requests += 1
            if self.cut_request(data):
                self.cuts += 1
                return
            if self.cut_answer_to(data):
                doomed.set()
            writer.write(data)
            await writer.drain()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if doomed.is_set():
                self.cuts += 1
                return
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def cutting_proxy(dsn: str) -> AsyncIterator[tuple[CuttingProxy, str]]:
    """The proxy, and the address to reach the database through it."""
    parts = urlsplit(dsn)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = CuttingProxy(parts.hostname, parts.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, dsn.replace(f":{parts.port}/", f":{port}/")
    finally:
        server.close()
        await proxy.close()
        await server.wait_closed()
