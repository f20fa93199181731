"""Lines for people, JSON for programs."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")
_FEW_SECONDS = 10
_MINUTE = 60
_HOUR_MINUTES = 60


def say(line: str | bytes) -> None:
    """To stdout. When nobody reads any more (`| head`), go on in silence: the exit code counts."""
    try:
        click.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(line: str) -> None:
    """To stderr: for people, and never part of the answer."""
    with suppress(BrokenPipeError):
        click.echo(line, err=True)


def print_json(value: Any) -> None:
    """One object on one line, keys in a stable order."""
    say(_ENCODER.encode(value))


def print_value(value: Any) -> None:
    """For people: text as it is, anything else as indented JSON."""
    if isinstance(value, str):
        say(value)
    else:
        say(msgspec.json.format(_ENCODER.encode(value), indent=2))


def print_fields(fields: dict[str, Any]) -> None:
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        say(f"{name:<{width}}  {'-' if value is None else shown(value)}")


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    cells = [[head.upper() for head in heads], *([_cell(each) for each in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads) - 1)]
    for row in cells:
        padded = [f"{cell:<{width}}" for cell, width in zip(row, [*widths, 0], strict=True)]
        say("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else shown(value)


def shown(value: object) -> str:
    """As text on one line: what an event says must not look like what we say."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def seconds_shown(seconds: float) -> str:
    """`0.34 s`, `12.5 s`, `4 min 05 s`, `3 h 07 min`: short, and never more exact than useful."""
    if seconds < _MINUTE:
        return f"{seconds:.2f} s" if seconds < _FEW_SECONDS else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < _HOUR_MINUTES:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // _HOUR_MINUTES} h {minutes % _HOUR_MINUTES:02} min"
