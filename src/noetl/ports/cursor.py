"""Rows that a loop claims from a database, a frame at a time, in the database's own transaction."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import msgspec

from noetl.ports.tool import ToolCall

Fate = Literal["committed", "aborted", "open"]
"""What became of a claim: its rows are ours, are nobody's, or it is not over yet."""


class ClaimsOver(msgspec.Struct, frozen=True, kw_only=True):
    """Which earlier claims nobody will ask for any more: those of frames of the same stage that
    have ended, and those that are too old. Names begin with frame and stage, and sort by frame."""

    frame: str  # the claiming one: later ones are not known to it
    stage: str
    open_frames: tuple[str, ...] = ()  # of the stage
    before: str = ""  # frames below this one are too old, of whatever stage

    def has(self, name: str) -> bool:
        frame, _, rest = name.partition("/")
        stage, _, _ = rest.partition("/")
        is_ended = stage == self.stage and frame < self.frame and frame not in self.open_frames
        return is_ended or frame < self.before


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of one frame. `call` holds the rendered SQL under `query`, and the credentials."""

    call: ToolCall
    name: str  # of this claim: no other claim of any frame or attempt has it
    idle_seconds_max: float  # a claim that is left open for longer is undone by the database
    over: ClaimsOver | None = None  # a database that keeps names of claims drops these with it


class OpenClaim(Protocol):
    """Rows in an open transaction. Leaving it without `commit` undoes the claim."""

    @property
    def rows(self) -> list[dict[str, Any]]: ...

    @property
    def transaction(self) -> str:
        """What `fate` wants to know after a crash; recorded before the commit."""
        ...

    async def commit(self) -> None: ...


class Cursor(Protocol):
    """Promises every driver keeps (each has a test of the same number):

    C1  a claim gives the rows that its SQL returns, as plain data, in their order
    C2  what a claim changed is seen by others after `commit` and never without it
    C3  the fate of a claim is `committed` once `commit` returned, `aborted` when its holder died
        before, and `open` as long as it may still become either
    C4  claims side by side give no row to two of them, if the SQL does its part
    C5  errors are ToolFailed with a kind of the vocabulary
    C6  claims that are over, and those without rows, leave nothing behind in the database
    """

    def claim(self, request: ClaimRequest) -> AbstractAsyncContextManager[OpenClaim]: ...

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate: ...

    async def close(self) -> None: ...


class Cursors(Protocol):
    """Drivers by the kind that a playbook writes."""

    def get(self, kind: str) -> Cursor:
        """Raises ToolFailed for a kind that is unknown, or whose driver is not installed."""
        ...
