"""What a task says about its SQL: the statements to run, and the values for their placeholders."""

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from noetl.ports.tool import ToolFailed
from noetl.tools.failures import failed
from noetl.tools.sql_effects import only_reads
from noetl.tools.sql_statements import (
    TEXT_KEPT_CHARS_MAX,
    TEXTS_KEPT_MAX,
    Dialect,
    Statement,
    split,
    tokens,
)

SCRIPT_BYTES_MAX = 64 * 1024 * 1024
_PLAIN = ("query", "commands")
_ENCODED = ("query_b64", "commands_b64")
_FURTHER = frozenset({"commands", *_ENCODED})


class BoundStatement(NamedTuple):
    statement: Statement
    text: str  # with the driver's own placeholders
    arguments: tuple[Any, ...]


def has_sql_effect(parameters: Mapping[str, Any], dialect: Dialect) -> bool:
    """Whether any statement may change something; what cannot be read here may."""
    if parameters.get("script"):
        return True
    try:
        statements = _split_all(_texts(parameters), dialect)
    except ToolFailed:
        return True
    return not all(only_reads(statement) for statement in statements)


async def bound_statements(parameters: Mapping[str, Any], dialect: Dialect) -> list[BoundStatement]:
    texts = _texts(parameters)
    if parameters.get("script"):
        texts.append(await _script(parameters["script"]))
    statements = _split_all(texts, dialect)
    if not statements:
        raise failed("client_error", "there is no SQL to run; write it under `query`")
    return _bound(statements, _values(parameters.get("params")), dialect)


def _split_all(texts: Sequence[str], dialect: Dialect) -> list[Statement]:
    return [statement for text in texts for statement in split(text, dialect)]


def _texts(parameters: Mapping[str, Any]) -> list[str]:
    query = parameters.get("query")
    if isinstance(query, str) and _FURTHER.isdisjoint(parameters):
        return [query]
    texts = [text for name in _PLAIN for text in _listed(name, parameters.get(name))]
    for name in _ENCODED:
        texts += [_decoded(name, text) for text in _listed(name, parameters.get(name))]
    return texts


def _listed(name: str, value: Any) -> list[str]:
    items = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if not all(isinstance(item, str) for item in items):
        raise failed("client_error", f"`{name}` holds something that is not text; write SQL there")
    return list(items)


def _decoded(name: str, text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise failed("parse", f"`{name}` is not SQL in base64; encode UTF-8 text") from None


async def _script(script: Any) -> str:
    """Inline text, or a file of this machine."""
    source = script.get("source") if isinstance(script, Mapping) else None
    source = source if isinstance(source, Mapping) else {}
    inline = source.get("code") or (script.get("code") if isinstance(script, Mapping) else None)
    if isinstance(inline, str):
        return inline
    uri = str(script.get("uri") or "") if isinstance(script, Mapping) else str(script)
    parts = urlsplit(uri)
    if not uri or parts.scheme not in ("", "file") or source.get("type") not in (None, "file"):
        raise failed(
            "client_error",
            "a script of SQL is inline (`source: {type: inline, code: …}`) or a file"
            " (`uri: /folder/name.sql`); fetch others with an http task first",
        )
    try:
        return await asyncio.to_thread(_read, Path(unquote(parts.path)))
    except (OSError, UnicodeDecodeError) as error:
        kind = "not_found" if isinstance(error, FileNotFoundError) else "storage_access"
        raise failed(kind, f"the script {uri!r} cannot be read: {error}") from error


def _read(path: Path) -> str:
    if path.stat().st_size > SCRIPT_BYTES_MAX:
        raise OSError(0, f"it is larger than {SCRIPT_BYTES_MAX} bytes")
    return path.read_text(encoding="utf-8")


def _values(params: Any) -> Mapping[str, Any] | Sequence[Any] | None:
    if isinstance(params, str) and params.strip():
        try:
            params = json.loads(params)
        except ValueError:
            raise failed("parse", "`params` is text but not JSON; write a list or a map") from None
    if params is None or params in ("", [], {}):
        return None
    if isinstance(params, Mapping | list | tuple):
        return params
    raise failed("client_error", "`params` is neither a list nor a map")


def _bound(
    statements: Sequence[Statement],
    values: Mapping[str, Any] | Sequence[Any] | None,
    dialect: Dialect,
) -> list[BoundStatement]:
    if values is None:  # then `:x`, `$1` and `?` are none of our business
        return [BoundStatement(statement, statement.text, ()) for statement in statements]
    binding = _Binding(values, dialect)
    return [binding.bind(statement) for statement in statements]


def _pieces(text: str, dialect: Dialect) -> Sequence[tuple[str, bool]]:
    """The text in order: placeholders, and what stands between them."""
    is_kept = len(text) <= TEXT_KEPT_CHARS_MAX
    return _kept_pieces(text, dialect) if is_kept else _cut_pieces(text, dialect)


@lru_cache(TEXTS_KEPT_MAX)
def _kept_pieces(text: str, dialect: Dialect) -> Sequence[tuple[str, bool]]:
    return _cut_pieces(text, dialect)


def _cut_pieces(text: str, dialect: Dialect) -> Sequence[tuple[str, bool]]:
    pieces, begin = [], 0
    for kind, start, end in tokens(text, dialect):
        if kind == "placeholder":
            pieces += [(text[begin:start], False), (text[start:end], True)]
            begin = end
    return (*pieces, (text[begin:], False))


class _Named(NamedTuple):
    """A statement all of whose placeholders have names, as the driver wants it."""

    text: str
    names: tuple[str, ...]  # of the values, in the driver's order


@lru_cache(TEXTS_KEPT_MAX)
def _kept_names(text: str, dialect: Dialect) -> _Named:
    """Rows of a loop come with the same text and the same names, so that nothing is looked up."""
    parts: list[str] = []
    names: list[str] = []
    for written, is_placeholder in _cut_pieces(text, dialect):
        if not is_placeholder:
            parts.append(written)
            continue
        name = _name(written)
        if dialect.name == "sqlite" or name not in names:
            names.append(name)
        parts.append("?" if dialect.name == "sqlite" else f"${names.index(name) + 1}")
    return _Named("".join(parts), tuple(names))


def _name(placeholder: str) -> str:
    return placeholder[2:-2] if placeholder.startswith("%(") else placeholder[1:]


class _Binding:
    """Rewrites placeholders of every spelling to those of the driver, statement by statement."""

    def __init__(self, values: Mapping[str, Any] | Sequence[Any], dialect: Dialect) -> None:
        self._values = values
        self._dialect = dialect
        self._next = 0  # `%s` and `?` count through all statements of the call

    def bind(self, statement: Statement) -> BoundStatement:
        values, text = self._values, statement.text
        if isinstance(values, Mapping) and len(text) <= TEXT_KEPT_CHARS_MAX:
            named = _kept_names(text, self._dialect)
            if all(name in values for name in named.names):
                arguments = tuple([values[name] for name in named.names])
                return BoundStatement(statement, named.text, arguments)
        return self._bind_each(statement)

    def _bind_each(self, statement: Statement) -> BoundStatement:
        parts: list[str] = []
        numbers: dict[str | int, int] = {}
        arguments: list[Any] = []
        for written, is_placeholder in _pieces(statement.text, self._dialect):
            key = self._key(written) if is_placeholder else None
            if key is None:
                parts.append(written)
            elif self._dialect.name == "sqlite":
                arguments.append(self._value(key, written))
                parts.append("?")
            else:
                if key not in numbers:
                    arguments.append(self._value(key, written))
                    numbers[key] = len(arguments)
                parts.append(f"${numbers[key]}")
        return BoundStatement(statement, "".join(parts), tuple(arguments))

    def _key(self, written: str) -> str | int | None:
        """The name or the index that is asked for; None if it only looks like a placeholder."""
        name = _name(written)
        if isinstance(self._values, Mapping):
            is_ours = name in self._values or written.startswith("%(")
            return name if is_ours else None
        if written in ("%s", "?"):
            self._next += 1
            return self._next - 1
        return int(name) - 1 if written[0] in "$?" and name.isdigit() else None

    def _value(self, key: str | int, written: str) -> Any:
        try:
            return self._values[key]  # type: ignore[index]
        except (KeyError, IndexError):
            count = len(self._values)
            raise failed(
                "client_error",
                f"the SQL asks for {written}, but `params` has no such value ({count} given)",
            ) from None
