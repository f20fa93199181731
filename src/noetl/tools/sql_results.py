"""What SQL tools give back: one shape for every database, and plain values in the rows."""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from noetl.tools.sql_statements import Statement, controls_transaction

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**64 - 1
"""Integers beyond these are text: the encoders of results do not carry them."""

MONTHS_PER_YEAR = 12

Outcome = dict[str, Any]


def rows_outcome(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Outcome:
    """Of two columns with one name, a row keeps the last."""
    listed = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"status": "ok", "columns": list(columns), "rows": listed, "row_count": len(listed)}


def change_outcome(affected: int, message: str) -> Outcome:
    return {"status": "ok", "affected_rows": affected, "row_count": affected, "message": message}


def combined(
    statements: Sequence[Statement], outcomes: Sequence[Outcome], *, prefer_rows: bool = False
) -> Outcome:
    """The last statement's outcome, and each under `command_<i>`.

    A COMMIT at the end hides nothing. `prefer_rows`: the last one that gave rows, if any did.
    """
    told = [
        outcome
        for statement, outcome in zip(statements, outcomes, strict=True)
        if not controls_transaction(statement)
    ] or list(outcomes)
    with_rows = [outcome for outcome in told if "rows" in outcome] if prefer_rows else []
    value = dict((with_rows or told)[-1])
    value["statement_count"] = len(outcomes)
    value |= {f"command_{index}": outcome for index, outcome in enumerate(outcomes)}
    return value


def plain(value: Any) -> Any:
    """What JSON can carry. Anything unheard of becomes its text."""
    if value is None or type(value) in (str, bool):
        return value
    for kinds, converted in _CONVERSIONS:
        if isinstance(value, kinds):
            return converted(value)
    return str(value)


def number(value: float | Decimal) -> int | float | str:
    """Whole numbers are integers. Text where neither an integer nor a float can carry it."""
    if isinstance(value, int):
        return value if INTEGER_MIN <= value <= INTEGER_MAX else str(value)
    if not math.isfinite(value):
        return str(Decimal(value))  # as databases spell them: NaN, Infinity
    if isinstance(value, float):
        return value
    if value == value.to_integral_value() and INTEGER_MIN <= value <= INTEGER_MAX:
        return int(value)
    nearest = float(value)
    return nearest if math.isfinite(nearest) else str(value)


def interval(months: int, days: int, microseconds: int) -> str:
    """As PostgreSQL writes it: `1 year 2 mons 3 days 04:05:06.5`, parts of zero left out."""
    years, months = _divided(months, MONTHS_PER_YEAR)
    parts = [
        f"{count} {word if count == 1 else word + 's'}"
        for count, word in ((years, "year"), (months, "mon"), (days, "day"))
        if count
    ]
    if microseconds or not parts:
        seconds, fraction = divmod(abs(microseconds), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        tail = f".{fraction:06}".rstrip("0") if fraction else ""
        parts.append(f"{'-' if microseconds < 0 else ''}{clock}{tail}")
    return " ".join(parts)


def _divided(value: int, by: int) -> tuple[int, int]:
    """Both parts with the sign of the value."""
    sign = -1 if value < 0 else 1
    whole, rest = divmod(abs(value), by)
    return sign * whole, sign * rest


def _moment(value: date) -> str:
    """Drivers have no word for infinity but the ends of Python's calendar."""
    if not isinstance(value, datetime):
        return {date.max: "infinity", date.min: "-infinity"}.get(value) or value.isoformat()
    moment = value.replace(tzinfo=UTC)
    if moment == datetime.max.replace(tzinfo=UTC):
        return "infinity"
    return "-infinity" if moment == datetime.min.replace(tzinfo=UTC) else value.isoformat()


def _duration(value: timedelta) -> str:
    return interval(0, value.days, value.seconds * 1_000_000 + value.microseconds)


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((int, float, Decimal), number),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode()),
    (date, _moment),  # a datetime is a date
    (time, time.isoformat),
    (timedelta, _duration),
    (Mapping, lambda value: {str(key): plain(item) for key, item in value.items()}),
    ((list, tuple, set, frozenset), lambda value: [plain(item) for item in value]),
)
