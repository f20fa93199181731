"""Who asks again with the same key gets the same execution: at most one is started for it.

The key is in the execution's first event, and the read models know it from there. What they do not
know yet is remembered here, so nothing depends on how far behind the log they are.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from noetl.domain.read_models import START_KEYS
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, plus
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.ports.projection_store import ProjectionStore

KEY_CHARACTERS_MAX = 256
REMEMBERED_MAX = 10_000
FORGOTTEN_AT_ONCE = 2

StartUnder = Callable[[ExecutionId], Awaitable[ExecutionId]]
_Named = tuple[Scope, str]


class StartKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, and for how long it stands for the execution that it started; None: for ever."""

    key: str
    window_seconds: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= KEY_CHARACTERS_MAX:
            raise RequestInvalid(
                f"a start key has 1 to {KEY_CHARACTERS_MAX} characters, this one {len(self.key)}"
            )
        if self.window_seconds is not None and self.window_seconds <= 0:
            raise RequestInvalid("the window of a start key is a positive number of seconds")


class StartedOnce(msgspec.Struct, frozen=True):
    execution_id: ExecutionId
    is_duplicate: bool


class _Known(msgspec.Struct, frozen=True):
    execution_id: ExecutionId
    started_at: Instant
    is_certain: bool = True  # else the log may not have it: started again, it has the same id


class StartKeys:
    def __init__(
        self, projections: ProjectionStore, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        self._projections = projections
        self._clock = clock
        self._new_id = new_id
        self._remembered: OrderedDict[_Named, _Known] = OrderedDict()
        self._under_way: dict[_Named, asyncio.Task[StartedOnce]] = {}

    async def start(self, scope: Scope, key: StartKey, start: StartUnder) -> StartedOnce:
        """Calls `start` unless the key is known; those who ask meanwhile wait for its answer."""
        named = (scope, key.key)
        task = self._under_way.get(named)
        if task is not None:
            return msgspec.structs.replace(await asyncio.shield(task), is_duplicate=True)
        task = asyncio.create_task(self._start(named, key, start))
        self._under_way[named] = task
        task.add_done_callback(lambda _: self._under_way.pop(named))
        return await asyncio.shield(task)

    async def _start(self, named: _Named, key: StartKey, start: StartUnder) -> StartedOnce:
        now = self._clock.now()
        known = await self._known(named)
        if known is not None and known.is_certain and _is_within(known, key, now):
            return StartedOnce(known.execution_id, is_duplicate=True)
        if known is None or known.is_certain:
            known = _Known(ExecutionId(self._new_id()), now, is_certain=False)
            self._remembered[named] = known
        execution = await start(known.execution_id)
        self._remembered[named] = _Known(execution, known.started_at)
        self._remembered.move_to_end(named)
        await self._forget_projected()
        return StartedOnce(execution, is_duplicate=False)

    async def _known(self, named: _Named) -> _Known | None:
        """What was started here is never older than what the read models know."""
        return self._remembered.get(named) or await self._projected(named)

    async def _projected(self, named: _Named) -> _Known | None:
        scope, key = named
        record = await self._projections.load(scope, START_KEYS, key)
        return None if record is None else msgspec.convert(record.state, _Known)

    async def _forget_projected(self) -> None:
        """Keys that the read models know; the others are remembered, however many they are."""
        for _ in range(FORGOTTEN_AT_ONCE):
            if len(self._remembered) <= REMEMBERED_MAX:
                return
            named, known = next(iter(self._remembered.items()))
            projected = await self._projected(named)
            if self._remembered.get(named) is not known:
                continue  # it was started anew meanwhile
            if projected is not None and projected.execution_id == known.execution_id:
                del self._remembered[named]
            else:
                self._remembered.move_to_end(named)


def _is_within(known: _Known, key: StartKey, now: Instant) -> bool:
    window = key.window_seconds
    return window is None or now < plus(known.started_at, seconds=window)
