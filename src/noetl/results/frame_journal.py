"""FrameJournal over any ObjectStore: one object per append, in the order of their numbers.

`noetl/journals/env=…/region=…/cell=…/<execution>/<frame>/<number>-<writer>.jsonl`: a server that
comes back without its folder finds what had begun. Writers have keys of their own, so none waits
for another; a holder reads before it appends, so it writes behind the holders before it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence

import msgspec

from noetl.domain.naming.placement import CellPlacement
from noetl.domain.naming.segment import escape
from noetl.domain.work import JournalEntry
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.kernel.instant import Instant, seconds_between
from noetl.ports.object_store import ObjectFacts, ObjectStore
from noetl.results.errors import ResultUnreadable

READS_AT_ONCE_MAX = 16
FRAMES_KNOWN_MAX = 10_000
"""Frames whose last number is remembered; of others it is looked up."""

MEDIA_TYPE = "application/x-ndjson"

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(JournalEntry)
_DIGITS = 10


class ObjectFrameJournal:
    """`writer` is a name that nobody else has: of this process, or of this adapter."""

    def __init__(self, objects: ObjectStore, placement: CellPlacement, writer: str) -> None:
        place = f"env={placement.env}/region={placement.region}/cell={placement.cell}"
        self._objects = objects
        self._prefix = f"noetl/journals/{place}/"
        self._writer = escape(writer)
        self._numbers: OrderedDict[str, int] = OrderedDict()  # the last one, by folder

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        folder = self._folder(execution, frame)
        number = await self._next(folder)
        key = f"{folder}{number:0{_DIGITS}d}-{self._writer}.jsonl"
        await self._objects.create(key, _ENCODER.encode_lines(entries), media_type=MEDIA_TYPE)

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]:
        folder = self._folder(execution, frame)
        keys = [facts.key async for facts in self._listed(folder)]
        self._know(folder, keys)
        entries: list[JournalEntry] = []
        for start in range(0, len(keys), READS_AT_ONCE_MAX):
            some = keys[start : start + READS_AT_ONCE_MAX]
            for read in await asyncio.gather(*(self._entries(key) for key in some)):
                entries += read
        return entries

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        folder = self._folder(execution, frame)
        await self._delete([facts.key async for facts in self._listed(folder)])
        self._numbers.pop(folder, None)

    async def forget(self, execution: ExecutionId) -> None:
        """Remove the journals of all of its frames."""
        folder = f"{self._prefix}{escape(execution)}/"
        await self._delete([facts.key async for facts in self._listed(folder)])

    async def forget_untouched(self, before: Instant) -> None:
        """Remove those of executions that have written nothing since, by the store's clock."""
        keys: list[str] = []
        owner, is_old = "", True
        async for facts in self._listed(self._prefix):
            execution = facts.key.removeprefix(self._prefix).partition("/")[0]
            if execution != owner:  # keys of one execution stand together
                await self._delete(keys if is_old else [])
                keys, owner, is_old = [], execution, True
            keys.append(facts.key)
            is_old = is_old and _is_before(facts, before)
        await self._delete(keys if is_old else [])

    def _folder(self, execution: ExecutionId, frame: FrameId) -> str:
        return f"{self._prefix}{escape(execution)}/{escape(frame)}/"

    async def _next(self, folder: str) -> int:
        if folder not in self._numbers:
            self._know(folder, [facts.key async for facts in self._listed(folder)])
        self._numbers[folder] += 1
        self._numbers.move_to_end(folder)
        return self._numbers[folder]

    def _know(self, folder: str, keys: Sequence[str]) -> None:
        """Others may have come further than we: whoever follows both stands behind both."""
        found = max((_number_of(folder, key) for key in keys), default=0)
        self._numbers[folder] = max(self._numbers.get(folder, 0), found)
        if len(self._numbers) > FRAMES_KNOWN_MAX:
            self._numbers.popitem(last=False)

    async def _listed(self, prefix: str) -> AsyncIterator[ObjectFacts]:
        after = ""
        while page := await self._objects.list_objects(prefix, after=after):
            for facts in page:
                yield facts
            after = page[-1].key

    async def _entries(self, key: str) -> list[JournalEntry]:
        data = b"".join([chunk async for chunk in self._objects.read(key)])
        try:
            return [_DECODER.decode(line) for line in data.splitlines()]
        except msgspec.MsgspecError as error:
            # An object is whole or not there: damaged, it must not pass for "nothing has begun".
            raise ResultUnreadable(f"{self._objects.url(key)} is no journal: {error}") from error

    async def _delete(self, keys: Sequence[str]) -> None:
        """The last first: half a removal leaves a journal that is shorter, and true."""
        for key in reversed(keys):
            await self._objects.delete(key)


def _number_of(folder: str, key: str) -> int:
    number = key.removeprefix(folder).partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _is_before(facts: ObjectFacts, before: Instant) -> bool:
    return facts.modified is not None and seconds_between(facts.modified, before) > 0
