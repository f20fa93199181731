"""`noetl playbooks …`: check playbooks, keep them in the catalogue, and look them up."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from noetl.bootstrap.checking import check, is_other_kind
from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.files import PATH, read_file
from noetl.cli.output import count, print_fields, print_json, print_table, say, shown, tell
from noetl.cli.problems import problem_line, summary
from noetl.cli.references import parse_reference
from noetl.domain.catalog import CatalogEntry
from noetl.dsl.check import Checked
from noetl.dsl.schema import playbook_schema
from noetl.ports.catalog import LIST_ENTRIES_MAX
from noetl.runtime.playbooks import Playbooks, Registered

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=PATH)


@click.group()
def playbooks() -> None:
    """Check playbooks, register them and look them up."""


@playbooks.command(name="check")
@_files
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def check_files(files: Sequence[str], as_json: bool) -> None:
    """Say everything that is wrong with playbooks, and how to fix it.

    `-` reads standard input. Warnings do not count as wrong. Names that templates read and that
    only a request can bring are listed. Exit code 0 when every file is in
    order, 1 when one is not, 2 when one cannot be read.
    """
    answers = {file: check(read_file(file)) for file in files}
    for file, checked in answers.items():
        if as_json:
            print_json(_as_json(file, checked))
        else:
            _print(file, checked)
    failed = [file for file, checked in answers.items() if not checked.is_sound]
    if failed and not as_json:
        tell(summary(answers, len(failed)))
    sys.exit(1 if failed else 0)


@playbooks.command()
def schema() -> None:
    """Print the JSON Schema of the language, for editors."""
    click.echo(msgspec.json.format(msgspec.json.encode(playbook_schema()), indent=2))


@playbooks.command()
@_files
@options.as_json_lines
def register(files: Sequence[str], as_json: bool) -> None:
    """Keep playbooks in the catalogue under their own paths.

    A text that differs from the newest version is a new version. When one file is wrong, none is
    registered.

    \b
    noetl playbooks register flows/*.yaml
    """
    texts = {file: read_file(file) for file in files}
    answers = {file: check(text) for file, text in texts.items()}
    failed = [file for file, checked in answers.items() if not checked.is_sound]
    for file, checked in answers.items():
        for problem in checked.problems:
            tell(problem_line(file, problem))
    if failed:
        tell(f"{summary(answers, len(failed))}; nothing was registered")
        sys.exit(2)
    for registered in asyncio.run(_register(list(texts.values()))):
        entry = registered.entry
        if as_json:
            print_json({**msgspec.to_builtins(entry), "is_new": registered.is_new})
        else:
            news = "registered" if registered.is_new else "known"
            say(f"{news}: {shown(entry.path)}@{entry.version}")


@playbooks.command(name="list")
@click.option("--path", help="All versions of this one playbook.")
@options.as_json_lines
def list_all(path: str | None, as_json: bool) -> None:
    """List registered playbooks. The newest version of each, or all versions of one.

    \b
    noetl playbooks list --path guides/hello
    """
    entries = asyncio.run(_list(path))
    if as_json:
        for entry in entries:
            print_json(entry)
        return
    if not entries:
        tell("no playbooks; register one: noetl playbooks register FILE")
        return
    rows = [(each.path, each.version, each.registered_at, each.description) for each in entries]
    print_table(("path", "version", "registered", "description"), rows)


@playbooks.command()
@click.argument("reference", metavar="PATH[@VERSION]")
@click.option("--text", "with_text", is_flag=True, help="Print the playbook's text and no more.")
@options.as_json
def show(reference: str, with_text: bool, as_json: bool) -> None:
    """Show a registered playbook. The newest version, or the one that is named.

    \b
    noetl playbooks show guides/hello@2 --text
    """
    entry, text = asyncio.run(_find(reference))
    if as_json:
        print_json({**msgspec.to_builtins(entry), **({"text": text} if with_text else {})})
    elif with_text:
        say(text.removesuffix("\n"))
    else:
        print_fields(
            {
                "path": entry.path,
                "version": entry.version,
                "name": entry.name,
                "description": entry.description,
                "registered": entry.registered_at,
                "digest": entry.digest,
                "id": entry.catalog_id,
            }
        )
        tell(f"next: noetl run {shown(entry.path)}")


def _print(file: str, checked: Checked) -> None:
    for problem in checked.problems:
        say(problem_line(file, problem))
    if checked.playbook is not None:
        asks = f"; a request brings {', '.join(checked.asks_for)}" if checked.asks_for else ""
        say(f"{file}: ok, {count(len(checked.playbook.steps), 'step')}{asks}")


def _as_json(file: str, checked: Checked) -> dict[str, Any]:
    return {
        "file": file,
        "ok": checked.is_sound,
        "digest": checked.digest,
        "problems": [msgspec.to_builtins(problem) for problem in checked.problems],
        "asks_for": checked.asks_for,
    }


async def _register(texts: Sequence[bytes]) -> list[Registered]:
    settings = load_settings()
    async with open_platform(settings) as platform:
        catalogue = _catalogue(platform)
        return [await catalogue.register(settings.scope, text) for text in texts]


async def _list(path: str | None) -> list[CatalogEntry]:
    """In order of path; without a path only the newest version of each."""
    settings = load_settings()
    found: dict[object, CatalogEntry] = {}
    async with open_platform(settings, create=False) as platform:
        after = ("", 0)
        while page := await platform.catalog.list(settings.scope, path=path, after=after):
            for entry in page:
                found[entry.path if path is None else entry.version] = entry
            after = (page[-1].path, page[-1].version)
            if len(page) < LIST_ENTRIES_MAX:
                break
    return list(found.values())


async def _find(reference: str) -> tuple[CatalogEntry, str]:
    settings = load_settings()
    path, version = parse_reference(reference)
    async with open_platform(settings, create=False) as platform:
        catalogue = _catalogue(platform)
        entry = await catalogue.find(settings.scope, path, version)
        return entry, await catalogue.text(settings.scope, entry)


def _catalogue(platform: Platform) -> Playbooks:
    return Playbooks(platform.catalog, platform.payloads, is_other_kind)
