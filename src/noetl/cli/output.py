"""Lines for people, JSON for programs."""

import os
import sys
from typing import Any

import click
import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def say(line: str | bytes) -> None:
    """To stdout. When nobody reads any more (`| head`), go on in silence: the exit code counts."""
    try:
        click.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """One object on one line, keys in a stable order."""
    say(_ENCODER.encode(value))


def print_fields(fields: dict[str, Any]) -> None:
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        say(f"{name:<{width}}  {'-' if value is None else shown(value)}")


def shown(value: object) -> str:
    """As text on one line: what an event says must not look like what we say."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
