"""A connection of a pool that keeps statements, and knows whether calls left something behind.

Most calls read and write rows and leave nothing in the session: the next one takes it as it is and
finds its statement prepared. Any other call gets a session as new, and cleans up behind it. What a
trigger or a view does to its session is not seen from here.
"""

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import asyncpg
from asyncpg import exceptions
from asyncpg.prepared_stmt import PreparedStatement

from noetl.ports.tool import ToolFailed
from noetl.tools.postgres_values import Session

STATEMENTS_MAX = 100
"""Kept per connection; the server holds a plan for each."""

TEXTS_SEEN_MAX = 1_000
"""Texts that came once. A text made by a template never comes again, and is not worth keeping."""

SHAPE_WORDS_MAX = 1_000
"""A statement of more words is read in pieces, which costs it little."""

Prepared: TypeAlias = "PreparedStatement[asyncpg.Record]"

_STALE_FAMILIES = ("42", "0A", "26", "XX")
_STALE = (exceptions.InterfaceError, exceptions.InternalClientError)
_NO_STATEMENTS = ("26000", "42P05")  # such as a proxy that gives each transaction another server


class Kept(NamedTuple):
    """A statement, and what the server said of it."""

    prepared: Prepared
    parameters: tuple[str, ...]  # names of their types
    attributes: Sequence["asyncpg.Attribute"]
    columns: list[str]


class KnownTexts:
    """What the connections of a pool have learnt of the texts that come; all of it are hints."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._are_short: OrderedDict[tuple[str, ...], bool] = OrderedDict()

    def comes_again(self, text: str) -> bool:
        if text in self._seen:
            return True
        self._seen[text] = None
        if len(self._seen) > TEXTS_SEEN_MAX:
            self._seen.popitem(last=False)
        return False

    def is_short(self, words: tuple[str, ...]) -> bool:
        """Whether all answers to such statements were; values stand outside of the words."""
        return self._are_short.get(words, False)

    def learn(self, words: tuple[str, ...], *, is_short: bool) -> None:
        """One that was long once is never short again."""
        if len(words) > SHAPE_WORDS_MAX or self._are_short.get(words) in (is_short, False):
            return
        self._are_short[words] = is_short
        if len(self._are_short) > TEXTS_SEEN_MAX:
            self._are_short.popitem(last=False)


class PostgresSession:
    def __init__(self, connection: Session, texts: KnownTexts) -> None:
        self.connection = connection
        self.is_suspect = False  # to be cleaned before anybody else has it
        self._is_touched = False  # by calls that left nothing but numbers of sequences
        self._keeps = True
        self._has_used_kept = False
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self.texts = texts  # shared by the connections of a pool
        self._numbers = itertools.count(1)

    def begin_plain(self) -> None:
        """For a call that leaves nothing behind."""
        self._is_touched, self._has_used_kept = True, False

    async def begin_afresh(self) -> None:
        """For any other call, which may also look at what others left."""
        if self._is_touched:
            await self.clean()
        self.is_suspect = True

    async def clean(self) -> None:
        """Settings, temporary tables and locks of one call are nothing to the next."""
        if self.connection.is_in_transaction():
            await self.connection.execute("ROLLBACK")
        self._kept.clear()
        await self.connection.execute("DISCARD ALL")
        self.is_suspect = self._is_touched = False

    async def statement(self, text: str) -> Kept:
        found = self._kept.get(text)
        if found is not None:
            self._kept.move_to_end(text)
            self._has_used_kept = True
            return found
        if self.is_suspect or not self._keeps or not self.texts.comes_again(text):
            return _described(await self.connection.prepare(text))
        name = f"noetl_{next(self._numbers)}"
        found = _described(await self.connection.prepare(text, name=name))
        self._kept[text] = found
        if len(self._kept) > STATEMENTS_MAX:
            self._kept.popitem(last=False)
        return found

    def forgets_after(self, error: Exception) -> bool:
        """Whether the error may be that of a kept statement whose tables have changed since.

        Then nothing of it has happened, and the call is run again with new statements.
        """
        code = getattr(error, "sqlstate", None) or ""
        is_stale = code.startswith(_STALE_FAMILIES) or isinstance(error, _STALE) or _is_unfit(error)
        if not is_stale or not self._has_used_kept or self.connection.is_closed():
            return False
        self._keeps = code not in _NO_STATEMENTS
        self._kept.clear()
        return True


def _is_unfit(error: Exception) -> bool:
    """A value that did not fit the type that its column had when the statement was prepared."""
    return isinstance(error, ToolFailed) and error.failure.kind == "transform"


def _described(prepared: Prepared) -> Kept:
    attributes = prepared.get_attributes()
    return Kept(
        prepared,
        tuple(kind.name for kind in prepared.get_parameters()),
        attributes,
        [attribute.name for attribute in attributes],
    )


async def first_rows(
    prepared: Prepared, arguments: Sequence[Any], limit: int
) -> list["asyncpg.Record"] | None:
    """At most so many, in one round trip. The driver offers that in the open for one row only, and
    None says that it does not offer it at all any more."""
    ask = getattr(prepared, "_PreparedStatement__bind_execute", None)
    if ask is None:
        return None
    rows: list[asyncpg.Record] = await ask(arguments, limit, None)
    return rows
