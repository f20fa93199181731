"""Values on their way to PostgreSQL and back: lenient to what templates give, plain in rows."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import asyncpg
import msgspec

from noetl.tools.failures import failed
from noetl.tools.sql_results import interval, plain

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_PLAIN = frozenset({str, int, bool, type(None)})  # the server's integers fit, whatever their type
_JSONB_VERSION = b"\x01"
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


async def set_codecs(session: Session) -> None:
    """In the binary format: arrays, ranges and rows of these types work too."""
    await session.set_type_codec(
        "json", schema="pg_catalog", encoder=_to_json, decoder=json.loads, format="binary"
    )
    await session.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + _to_json(value),
        decoder=lambda stored: json.loads(stored[1:]),
        format="binary",
    )
    await session.set_type_codec(
        "interval",
        schema="pg_catalog",
        encoder=tuple,
        decoder=lambda parts: interval(*parts),
        format="tuple",
    )


def _to_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


_ARROW_TYPES = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "int64"),
    **dict.fromkeys(("float4", "float8"), "float64"),
    "bool": "bool",
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "bytea"), "string"),
    **dict.fromkeys(("timestamp", "timestamptz", "date", "time", "timetz", "interval"), "string"),
}


def hints_of(columns: Iterable["asyncpg.Attribute"]) -> dict[str, str]:
    """Types of Arrow for columns that may begin with nothing; others are told by their values."""
    named = ((column.name, _ARROW_TYPES.get(column.type.name)) for column in columns)
    return {name: kind for name, kind in named if kind is not None}


def plain_row(row: "asyncpg.Record") -> list[Any]:
    return [plain_value(value) for value in row]


def plain_value(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, asyncpg.Record):  # a composite value
        return {name: plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, asyncpg.Range):
        return _range(value)
    if isinstance(value, asyncpg.BitString):
        return value.as_string().replace(" ", "")
    return plain(value)


def _range(value: "asyncpg.Range[Any]") -> str:
    """As PostgreSQL writes it; `empty` for the empty one."""
    if value.isempty:
        return "empty"
    lower, upper = ("" if end is None else _end(end) for end in (value.lower, value.upper))
    left, right = "[" if value.lower_inc else "(", "]" if value.upper_inc else ")"
    return f"{left}{lower},{upper}{right}"


def _end(value: Any) -> str:
    text = str(plain_value(value))
    return f'"{text}"' if " " in text or "," in text else text


def coerced(value: Any, type_name: str) -> Any:
    """The value as the driver wants it for a parameter of this type; text as SQL would read it."""
    if value is None:
        return None
    if type_name.endswith("[]"):
        items = json.loads(value) if isinstance(value, str) and value.startswith("[") else value
        if not isinstance(items, list | tuple):
            raise _unfit(value, type_name)
        return [coerced(item, type_name[:-2]) for item in items]
    convert = _CONVERSIONS.get(type_name)
    try:
        return value if convert is None else convert(value)
    except (TypeError, ValueError, InvalidOperation, binascii.Error):
        raise _unfit(value, type_name) from None


def _unfit(value: Any, type_name: str) -> Exception:
    kind = type(value).__name__
    return failed(
        "transform",
        f"a value of `params` is {kind} and does not fit {type_name};"
        f" change it, or let the server read text: `$1::text::{type_name}`",
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | Mapping | list):
        return msgspec.json.encode(value).decode()
    return str(value)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    number = Decimal(str(value).strip()) if not isinstance(value, bool) else Decimal(int(value))
    if number != number.to_integral_value():
        raise ValueError("not whole")
    return int(number)


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("neither true nor false")
    return word in _TRUE


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())


def _aware(value: Any) -> datetime:
    moment = _moment(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _naive(value: Any) -> datetime:
    moment = _moment(value)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _day(value: Any) -> date:
    return _moment(value).date() if type(value) is not date else value


def _interval(value: Any) -> tuple[int, int, int]:
    """Of seconds, or of Python's own; text needs `$1::text::interval` in the SQL."""
    if isinstance(value, timedelta):
        return 0, value.days, value.seconds * 1_000_000 + value.microseconds
    return 0, 0, int(Decimal(str(value)) * 1_000_000)


def _bytes(value: Any) -> bytes:
    """Text is base64, the form in which rows give bytes back."""
    if isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return bytes(value)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _integer),
    **dict.fromkeys(("float4", "float8"), float),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "unknown", "citext", "xml"), _text),
    "numeric": lambda value: Decimal(str(value).strip()),
    "bool": _boolean,
    "timestamptz": _aware,
    "timestamp": _naive,
    "date": _day,
    "time": lambda value: value if isinstance(value, time) else time.fromisoformat(str(value)),
    "interval": _interval,
    "uuid": str,
    "bytea": _bytes,
}
