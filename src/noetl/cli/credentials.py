"""`noetl credentials …`: what tools log in with, locked in the store and never shown again."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.settings import Settings, load_settings
from noetl.cli import options
from noetl.cli.files import PATH, read_file
from noetl.cli.output import print_json, print_table, shown, tell
from noetl.cli.values import parse_mapping, parse_value
from noetl.domain.credential import CredentialEntry, NewCredential
from noetl.domain.playbook.wording import misspelt
from noetl.kernel.errors import CredentialMissing, LogMissing

USUAL_FIELDS = {
    "postgres": ("host", "port", "database", "user", "password"),
    "bearer": ("token",),
    "basic": ("username", "password"),
    "api_key": ("api_key",),
    "nats": ("url", "user", "password"),
    "s3": ("key_id", "secret", "region", "endpoint"),
    "gcs": ("key_id", "secret"),
    "hmac": ("key_id", "secret"),
    "secret": ("value",),
}
"""What is asked for when nothing is given; any other field can be given too."""

_ANY_FIELDS = ("value",)
_OPEN_FIELDS = frozenset({"host", "port", "database", "user", "username", "url", "region"})
"""Fields that are typed in sight; every other one is a secret."""


@click.group()
def credentials() -> None:
    """Keep what tools log in with.

    Credentials are locked with the key in the home, or with NOETL_SECRET_KEY. Playbooks name them
    (`auth: pg_local`); nothing prints them.
    """


@credentials.command()
@click.argument("name", required=False)
@click.option("--type", "kind", help="postgres, bearer, basic, api_key, nats, s3, gcs, secret, …")
@click.option("--data", help="The fields as a JSON map; `-` reads it from standard input.")
@click.option("--file", type=PATH, help="A JSON or YAML file: {name, type, data} or the fields.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="KEY=VALUE",
    help="One field; other users may see it in the list of processes.",
)
@click.option("--description", help="A note for people.")
@click.option("--replace", "replaces", is_flag=True, help="Even when one of that name exists.")
@options.as_json
def add(name: str | None, as_json: bool, replaces: bool, **given: Any) -> None:
    """Add a credential, or --replace the one of that name.

    Without --data, --file or --field the fields are asked for, secrets unseen.

    \b
    noetl credentials add pg_local --type postgres
    noetl credentials add pg_local --type postgres --data - < pg.json
    noetl credentials add --file pg_local.json --replace
    """
    if name is not None and not replaces and not _sources(given):
        asyncio.run(_check_free(name))  # before anybody types secrets in vain
    whole = _given(name, given)
    entry, before = asyncio.run(_put(whole, replaces))
    if as_json:
        print_json(entry)
        return
    tell(f"kept: credential {shown(entry.name)} ({shown(entry.type)})")
    meant = misspelt(entry.type, USUAL_FIELDS)
    if meant is not None and meant != entry.type:
        tell(f"warning: is the type {shown(entry.type)} a slip of the pen? There is {meant}")
    if before is not None:
        tell(f"it replaced the one of {before.updated_at}, whose fields are gone")


@credentials.command(name="list")
@click.option("--type", "kind", help="Only credentials of this type.")
@options.as_json_lines
def list_all(kind: str | None, as_json: bool) -> None:
    """List credentials: names, types and dates, never secrets."""
    entries = asyncio.run(_list(kind))
    if as_json:
        for entry in entries:
            print_json(entry)
        return
    rows = [(each.name, each.type, each.updated_at, each.description) for each in entries]
    if rows:
        print_table(("name", "type", "changed", "description"), rows)
    else:
        tell("no credentials; add one: noetl credentials add NAME --type TYPE")


@credentials.command()
@click.argument("name")
@options.is_sure
@options.as_json
def remove(name: str, is_sure: bool, as_json: bool) -> None:
    """Remove a credential for good. Playbooks that name it fail from then on.

    \b
    noetl credentials remove pg_local --yes
    """
    options.ask(f"remove the credential {name}?", is_sure)
    if not asyncio.run(_remove(name)):
        raise CredentialMissing(name)
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        tell(f"removed: credential {shown(name)}")


def _sources(given: dict[str, Any]) -> list[str]:
    return [option for option in ("data", "file", "fields") if given[option]]


def _given(name: str | None, given: dict[str, Any]) -> NewCredential:
    if len(_sources(given)) > 1:
        raise click.UsageError("give one of --data, --file and --field")
    if given["file"] is not None:
        return _from_file(name, given)
    if name is None or given["kind"] is None:
        raise click.UsageError("give a NAME and a --type, or a --file that holds both")
    return NewCredential(
        name=name, type=given["kind"], data=_data(given), description=given["description"]
    )


def _from_file(name: str | None, given: dict[str, Any]) -> NewCredential:
    """The reference format has `data` beside `name` and `type`; anything else is the data."""
    content = parse_mapping(read_file(given["file"]), f"--file {given['file']}")
    data = content.get("data")
    whole = content if isinstance(data, dict) else {"data": content}
    named = name or whole.get("name")
    kind = given["kind"] or whole.get("type")
    if not named or not kind:
        raise click.UsageError(f"{given['file']} names no name or no type; give NAME and --type")
    return msgspec.convert(
        {
            "name": named,
            "type": kind,
            "data": whole["data"],
            "description": given["description"] or whole.get("description"),
            "tags": whole.get("tags") or (),
            "meta": whole.get("meta") or {},
        },
        NewCredential,
    )


def _data(given: dict[str, Any]) -> dict[str, Any]:
    if given["fields"]:
        tell("warning: --field is visible to other users in the list of processes; prefer --data -")
        return dict(_field(field) for field in given["fields"])
    if given["data"] == "-":
        return parse_mapping(read_file("-"), "standard input")
    if given["data"] is not None:
        return parse_mapping(given["data"].encode(), "--data")
    if not sys.stdin.isatty():
        raise click.UsageError("there is nobody to ask; give --data -, --file or --field")
    return _asked(USUAL_FIELDS.get(given["kind"], _ANY_FIELDS))


def _field(text: str) -> tuple[str, Any]:
    """The value is not repeated in a message: it may be a secret."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError("--field is KEY=VALUE; e.g. --field user=demo")
    return key, parse_value(value, f"--field {key}")


def _asked(names: Sequence[str]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name in names:
        is_open = name in _OPEN_FIELDS
        answer = click.prompt(
            name, default="", show_default=False, hide_input=not is_open, err=True
        )
        if answer:
            answers[name] = int(answer) if name == "port" and answer.isdecimal() else answer
    return answers


async def _check_free(name: str) -> None:
    settings = load_settings()
    try:
        async with open_platform(settings, create=False) as platform:
            _refuse_taken(await _named(platform, settings, name))
    except LogMissing:  # nothing is kept yet
        return


async def _put(
    credential: NewCredential, replaces: bool
) -> tuple[CredentialEntry, CredentialEntry | None]:
    """What is kept now, and what was kept under that name before."""
    settings = load_settings()
    async with open_platform(settings) as platform:
        before = await _named(platform, settings, credential.name)
        if not replaces:
            _refuse_taken(before)
        return await platform.credentials.put(settings.scope, credential), before


async def _named(platform: Platform, settings: Settings, name: str) -> CredentialEntry | None:
    entries = await platform.credentials.list(settings.scope)
    return next((entry for entry in entries if entry.name == name), None)


def _refuse_taken(entry: CredentialEntry | None) -> None:
    if entry is not None:
        raise click.UsageError(
            f"there is a credential {shown(entry.name)} ({shown(entry.type)}, changed"
            f" {entry.updated_at}) already; nothing was changed. Choose another name, or give"
            " --replace to put this one in its place"
        )


async def _list(kind: str | None) -> list[CredentialEntry]:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        return await platform.credentials.list(settings.scope, type=kind)


async def _remove(name: str) -> bool:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        return await platform.credentials.remove(settings.scope, name)
