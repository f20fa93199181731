"""What a transfer is asked to do, checked once; and rows on their way from fields to columns."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from noetl.domain.credential import OpenCredential
from noetl.domain.playbook.wording import choices, shown
from noetl.ports.tool import ToolCall, ToolFailed
from noetl.tools.failures import failed

MODES = ("append", "replace", "upsert")
CHUNK_ROWS = 1_000
CHUNK_ROWS_MAX = 100_000

Row = dict[str, Any]

_NAME_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')
_TYPE_NAMES = ("type", "kind", "tool")


class Source(Protocol):
    def chunks(self, size: int) -> AsyncIterator[list[Row]]: ...


class Target(Protocol):
    async def write(self, rows: list[Row], columns: tuple[str, ...]) -> None: ...


class Endpoints(Protocol):
    """What the module of a kind offers; each opens for the time of one transfer."""

    def open_source(self, place: "Place") -> AbstractAsyncContextManager[Source]: ...

    def open_target(
        self, place: "Place", plan: "TransferPlan"
    ) -> AbstractAsyncContextManager[Target]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One end of a transfer."""

    side: str
    kind: str
    options: Mapping[str, Any]
    credential: OpenCredential | None
    call: ToolCall

    @property
    def connection(self) -> dict[str, Any]:
        """The credential's fields under those that stand beside it."""
        stored = self.credential.data if self.credential else {}
        return {**stored, **{key: self.options[key] for key in self.options if key != "auth"}}

    def text(self, name: str) -> str | None:
        given = self.options.get(name)
        return None if given is None or given == "" else str(given)

    def query(self) -> str:
        """What to read: a query, or all of a table."""
        written = next(
            (self.text(name) for name in ("query", "command", "sql") if self.text(name)), None
        )
        if written is not None:
            return written.rstrip().rstrip(";")
        if self.text("table") is None:
            raise self.mistake("needs `query`, or `table`")
        return f"SELECT * FROM {quoted_name(self.text('table') or '')}"

    def table(self) -> str:
        name = self.text("table")
        if name is None:
            raise self.mistake("needs `table`")
        return quoted_name(name)

    def mistake(self, words: str) -> ToolFailed:
        return failed("client_error", f"the {self.side} of a transfer {words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPlan:
    source: Place
    target: Place
    mode: str
    key: tuple[str, ...]
    mapping: Mapping[str, str] | None  # column -> field
    chunk_rows: int

    @property
    def direction(self) -> str:
        return f"{self.source.kind}_to_{self.target.kind}"


def transfer_plan(call: ToolCall) -> TransferPlan:
    source, target = _place(call, "source"), _place(call, "target")
    return TransferPlan(
        source=source,
        target=target,
        mode=_mode(call.parameters, target.options),
        key=_key(call.parameters, target.options),
        mapping=_mapping(call.parameters, target.options),
        chunk_rows=_chunk_rows(call.parameters.get("chunk_size")),
    )


def kind_of(options: Any) -> str:
    """The spelling differs; without one a transfer cannot know where to go."""
    if not isinstance(options, Mapping):
        return ""
    return next((str(options[name]) for name in _TYPE_NAMES if options.get(name)), "")


def _place(call: ToolCall, side: str) -> Place:
    options = call.parameters.get(side)
    if not isinstance(options, Mapping) or not kind_of(options):
        raise failed("client_error", f"a transfer needs `{side}`: a mapping with `type`")
    return Place(
        side=side,
        kind=kind_of(options),
        options=options,
        credential=_credential(call, side, options.get("auth") or options.get("credential")),
        call=call,
    )


def _credential(call: ToolCall, side: str, named: Any) -> OpenCredential | None:
    """The one of this side; or by its name or alias; or the only one that there is."""
    if side in call.credentials:
        return call.credentials[side]
    if isinstance(named, Mapping):
        named = next((named[key] for key in ("key", "credential", "name") if named.get(key)), None)
    if not named:
        return None
    for alias, credential in call.credentials.items():
        if named in (alias, credential.name):
            return credential
    if call.credentials.keys() == {""}:
        return call.credentials[""]
    raise failed(
        "client_error",
        f"the {side} of a transfer names the credential {shown(named)!r}, which the task was not"
        " given; add it: noetl credentials add NAME",
    )


def _mode(parameters: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    mode = str(parameters.get("mode") or target.get("mode") or "append")
    if mode not in MODES:
        raise failed(
            "client_error", f"a transfer has no mode {shown(mode)!r}; use {choices(MODES)}"
        )
    return mode


def _key(parameters: Mapping[str, Any], target: Mapping[str, Any]) -> tuple[str, ...]:
    given = parameters.get("key") or target.get("key") or ()
    key = (given,) if isinstance(given, str) else tuple(given)
    if _mode(parameters, target) == "upsert" and not key:
        raise failed(
            "client_error", "an upsert needs `key`: the columns that tell which row is meant"
        )
    return key


def _mapping(parameters: Mapping[str, Any], target: Mapping[str, Any]) -> Mapping[str, str] | None:
    given = parameters.get("mapping") or target.get("mapping")
    if not given:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given.values()):
        raise failed("client_error", "the mapping of a transfer must be `column: field` lines")
    return given


def _chunk_rows(given: Any) -> int:
    try:
        rows = CHUNK_ROWS if given is None or given == "" else int(given)
    except (TypeError, ValueError):
        rows = 0
    if not 1 <= rows <= CHUNK_ROWS_MAX:
        raise failed("client_error", f"chunk_size must be a number from 1 to {CHUNK_ROWS_MAX}")
    return rows


def quoted_name(name: str) -> str:
    """`schema.table` as identifiers: whatever stands in it, it is a name and no SQL."""
    parts = _NAME_PART.findall(name)
    if ".".join(parts) != name or "\x00" in name:
        raise failed("client_error", f"{shown(name)!r} is no name of a table")
    return ".".join(part if part.startswith('"') else quoted(part) for part in parts)


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def field_of(row: Row, field: str) -> Any:
    """`a.b` is the field b of a, unless a field has that very name."""
    if field in row:
        return row[field]
    found: Any = row
    for part in field.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def columns_of(rows: list[Row]) -> tuple[str, ...]:
    """Every field of these rows, in the order of first sight."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def last_by_key(rows: list[Row], key: tuple[str, ...]) -> list[Row]:
    """One statement may touch a row once: of several with one key, the last one counts."""
    return list({repr([row.get(name) for name in key]): row for row in rows}.values())


def on_conflict(plan: TransferPlan, columns: tuple[str, ...]) -> str:
    """The end of an insert: in every database here the same words mean an upsert."""
    if plan.mode != "upsert":
        return ""
    key = ", ".join(map(quoted, plan.key))
    changed = [quoted(name) for name in columns if name not in plan.key]
    if not changed:
        return f" ON CONFLICT ({key}) DO NOTHING"
    updates = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f" ON CONFLICT ({key}) DO UPDATE SET {updates}"
