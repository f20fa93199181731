"""Connections to NATS, one for each address and user, shared by all calls."""

import asyncio

from nats.aio.client import Client

from noetl.tools.credential_fields import NatsFields

CONNECT_SECONDS_MAX = 10


class NatsConnections:
    """A lost connection is not repaired behind a call's back: the next call makes a new one."""

    def __init__(self) -> None:
        self._kept: dict[NatsFields, Client] = {}
        self._locks: dict[NatsFields, asyncio.Lock] = {}

    async def get(self, fields: NatsFields) -> Client:
        async with self._locks.setdefault(fields, asyncio.Lock()):
            kept = self._kept.get(fields)
            if kept is None or not kept.is_connected:
                await self._forget(fields)
                kept = self._kept[fields] = await _connected(fields)
            return kept

    async def close(self) -> None:
        for fields in list(self._kept):
            await self._forget(fields)

    async def _forget(self, fields: NatsFields) -> None:
        client = self._kept.pop(fields, None)
        if client is not None:
            await client.close()


async def _connected(fields: NatsFields) -> Client:
    client = Client()
    seen: list[Exception] = []

    async def remember(error: Exception) -> None:
        seen.append(error)

    try:
        await client.connect(
            fields.url or "",
            error_cb=remember,
            user=fields.user,
            password=fields.password,
            token=fields.token,
            name="noetl",
            allow_reconnect=False,
            connect_timeout=CONNECT_SECONDS_MAX,
            max_reconnect_attempts=1,  # also counts first connections; 0 would mean for ever
            reconnect_time_wait=0,
        )
    except BaseException:
        await client.close()  # the library leaves the socket open
        raise
    return client
