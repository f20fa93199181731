"""The slots of a worker: how much may run at once, and who waits for its turn."""

import asyncio
from collections import deque


class Slots:
    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._some_are_free = asyncio.Event()
        self._some_are_free.set()

    @property
    def free(self) -> int:
        return self._free

    async def until_free(self) -> None:
        while self._free == 0:  # between the freeing and our turn somebody may have come back
            await self._some_are_free.wait()

    def ask(self, *, first: bool = False) -> "asyncio.Future[None]":
        """Done when the slot is ours; whoever goes on with its work comes before new work."""
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._free > 0:
            self._free -= 1
            ticket.set_result(None)
        elif first:
            self._waiting.appendleft(ticket)
        else:
            self._waiting.append(ticket)
        if self._free == 0:
            self._some_are_free.clear()
        return ticket

    def give_back(self) -> None:
        while self._waiting:
            ticket = self._waiting.popleft()
            if not ticket.done():  # its owner may have gone away
                ticket.set_result(None)
                return
        self._free += 1
        self._some_are_free.set()


class Place:
    """The slot of one line of work: asked for at once, given back while the work waits."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._ticket: asyncio.Future[None] | None = slots.ask()

    def leave(self) -> None:
        """Leaving again changes nothing."""
        ticket, self._ticket = self._ticket, None
        if ticket is None or ticket.cancelled():
            return
        if ticket.done():
            self._slots.give_back()
        else:
            ticket.cancel()

    async def come_back(self) -> None:
        """Returns when the slot is ours."""
        if self._ticket is None:
            self._ticket = self._slots.ask(first=True)
        await self._ticket
