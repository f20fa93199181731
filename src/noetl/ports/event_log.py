"""The append-only log, as the rest of the program sees it."""

from collections.abc import Sequence
from typing import Protocol

from noetl.domain.log import Append, AppendOutcome, Cutoff, StoredEvent, StreamHead
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope

PAGE_EVENTS_MAX = 1_000
GROUP_APPENDS_MAX = 1_000


class EventArchive(Protocol):
    """Where events lie that were moved out of the log: whoever moves them answers for them."""

    async def is_archived(self, execution: ExecutionId) -> bool:
        """Whether its events lie elsewhere, with a manifest that says so."""
        ...


class EventLog(EventArchive, Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    L1   appended events read back byte for byte, in order, with versions 1, 2, 3 …
    L2   an append lands whole or not at all, also when the process dies in the middle
    L3   an append at the wrong expected version is a VersionConflict and writes nothing
    L4   of many appends racing at one version, exactly one lands
    L5   positions rise in commit order: once a reader has seen n, nothing at or below n appears
    L6   in a group of appends the refused ones are told why and the others land
    L7   an append whose idempotency keys are all recorded is that append again: nothing of it is
         written, unkeyed events included, and it gets the recorded outcome; one with some of
         them recorded, or one of them twice, is KeyReused
    L8   a fact that may exist once per execution (`unique_fact`) exists once: DuplicateFact
    L9   only events that continue their stream land: dense versions, unbroken `prev_event_id`,
         one scope per stream
    L10  `version_at` answers for an event, a position or a time; in a stream ingest time never
         falls
    L11  what is acknowledged survives the death of the process and of the machine
    L12  `identity` names this log: a log made anew has another one
    L13  an execution is archived once its events were moved out, and not before: with events in
         the log, or without any ever, it is not
    """

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        """Commit a group at once and say for each append what became of it."""
        ...

    async def head(self, execution: ExecutionId) -> StreamHead: ...

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        """Whose stream it is, or None when there is no such stream."""
        ...

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        """The next page of one stream."""
        ...

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        """The next page of the whole log in commit order; empty when there is nothing new."""
        ...

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        """The last version at or before the cutoff (0: before the first event).

        None when the cutoff names an event that is not in the stream.
        """
        ...

    async def identity(self) -> str: ...

    async def close(self) -> None: ...
