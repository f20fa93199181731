"""Lines for people, JSON for programs."""

from typing import Any

import click
import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def print_json(value: Any) -> None:
    """One object on one line, keys in a stable order."""
    click.echo(_ENCODER.encode(value))


def print_fields(fields: dict[str, Any]) -> None:
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {'-' if value is None else value}")
