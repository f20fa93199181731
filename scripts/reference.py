"""Write docs/reference: every event, error, setting and command, taken from the code itself.

With --check a stale page is an error.
"""

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import get_args, get_origin, get_type_hints

import click
import msgspec

from noetl.bootstrap.settings import PREFIX, Settings
from noetl.cli.main import commands
from noetl.domain.events import EVENT_CLASSES
from noetl.domain.events.envelope import Envelope
from noetl.kernel import errors
from noetl.ports import tool
from noetl.templates import errors as template_errors

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by scripts/reference.py; `make fix` renews it. -->\n\n"


def events_page() -> str:
    lines = ["# Events\n", "Every event has an envelope and a body of its own type.\n"]
    lines += ["## The envelope\n", *_fields(Envelope)]
    for cls in EVENT_CLASSES:
        lines += [f"\n## `{cls.TYPE}`\n", f"`{cls.__name__}`, version {cls.VERSION}. {_doc(cls)}\n"]
        lines += list(_fields(cls))
    return "\n".join(lines) + "\n"


def _fields(cls: type) -> Iterator[str]:
    fields = msgspec.structs.fields(cls)
    if not fields:
        yield "No fields."
        return
    hints = get_type_hints(cls)
    yield "| field | type | |"
    yield "|---|---|---|"
    for field in fields:
        need = "required" if field.required else ""
        yield f"| `{field.name}` | {_type_name(hints[field.name])} | {need} |"


def _type_name(hint: object) -> str:
    """A type as a reader says it: `EventId or None`, `dict[str, Any]`."""
    arguments = get_args(hint)
    if NoneType in arguments:
        others = [_type_name(argument) for argument in arguments if argument is not NoneType]
        return " or ".join([*others, "`null`"])
    if get_origin(hint) is None:
        return f"`{getattr(hint, '__name__', hint)}`"
    return f"`{str(hint).replace('typing.', '').replace('noetl.kernel.ids.', '')}`"


def _doc(cls: type) -> str:
    own = cls.__doc__ if cls.__doc__ != msgspec.Struct.__doc__ else None
    return " ".join((own or "").split())


def errors_page() -> str:
    tree = inspect.getdoc(errors) or ""
    lines = ["# Errors\n", "`code` is stable: match on it in scripts and clients.\n"]
    for drawn in (tree, inspect.getdoc(template_errors) or ""):
        lines += ["```text", drawn.partition("\n\n")[2].strip(), "```\n"]
    lines += ["| code | class | try again |", "|---|---|---|"]
    for cls in _descendants(errors.NoETLError):
        lines.append(f"| `{cls.code}` | `{cls.__name__}` | {'yes' if cls.retryable else ''} |")
    return "\n".join(lines) + "\n"


# Named, so that the page does not depend on what else has been imported.
_ERROR_MODULES = (errors.__name__, template_errors.__name__, tool.__name__)


def _descendants(cls: type[errors.NoETLError]) -> Iterator[type[errors.NoETLError]]:
    yield cls
    kept = (child for child in cls.__subclasses__() if child.__module__.startswith(_ERROR_MODULES))
    for child in sorted(kept, key=_place):
        yield from _descendants(child)


def _place(cls: type) -> tuple[int, int]:
    """By module and line: subclasses come in the order in which they were imported."""
    at = next(n for n, module in enumerate(_ERROR_MODULES) if cls.__module__.startswith(module))
    return at, inspect.getsourcelines(cls)[1]


def settings_page() -> str:
    lines = ["# Settings\n", "Environment variables, read once at the start.\n"]
    lines += ["| variable | default | meaning |", "|---|---|---|"]
    hints = get_type_hints(Settings, include_extras=True)
    for field in msgspec.structs.fields(Settings):
        (meta,) = hints[field.name].__metadata__
        lines.append(f"| `{PREFIX}{field.name.upper()}` | `{field.default}` | {meta.description} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    return "# Commands\n" + "".join(_help(commands, click.Context(commands, info_name="noetl")))


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from _help(child, click.Context(child, info_name=name, parent=context))


PAGES = {
    "events.md": events_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "commands.md": commands_page,
}


def stale(folder: Path) -> list[str]:
    """The pages that are not what the code would write now."""
    return [
        name
        for name, page in PAGES.items()
        if not (folder / name).is_file() or (folder / name).read_text() != NOTICE + page()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="The reference pages.")
    parser.add_argument("--check", action="store_true", help="fail when a page is stale")
    if parser.parse_args().check:
        old = stale(FOLDER)
        if old:
            print(f"reference: {', '.join(old)} is stale; run: make fix", file=sys.stderr)
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(NOTICE + page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
