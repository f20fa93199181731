"""`noetl results …`: stored results by name. Their upkeep is in `results_upkeep`."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.repairing import open_repairs
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.lazy import LazyCommands
from noetl.cli.output import print_fields, print_json, print_table, print_value, tell
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import Fingerprint
from noetl.kernel.errors import ObjectMissing, PayloadCorrupt, PayloadMissing, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.runtime.result_lookup import FoundResult, find_result, value_of
from noetl.runtime.results_repair_objects import key_of

_PLACES = {name: f"noetl.cli.results_upkeep:{name}" for name in ("gc", "verify")}

_uri = click.argument("uri", metavar="URI")


@click.group(commands=LazyCommands(_PLACES))
def results() -> None:
    """Look at stored results, verify them, and repair them."""


@results.command(name="list")
@click.argument("execution", metavar="ID", type=ExecutionId)
@options.as_json_lines
def list_all(execution: ExecutionId, as_json: bool) -> None:
    """List what lies outside the log.

    That is large results, frames, datasets, collections and the playbook. Smaller results stand in
    their events: `noetl executions events ID`.
    """
    found = asyncio.run(_list(execution))
    if as_json:
        for facts in found:
            print_json(facts)
        return
    rows = [(f["uri"], f["media_type"], f["byte_length"], f["row_count"]) for f in found]
    print_table(("name", "type", "bytes", "rows"), rows)


@results.command()
@_uri
@options.as_json
def show(uri: str, as_json: bool) -> None:
    """Show what is known of a result, and what its event tells of it.

    \b
    noetl results show noetl://default/default/results/ID/load/0/0/1@1
    """
    facts = asyncio.run(_show(uri))
    if as_json:
        print_json(facts)
        return
    preview = facts.pop("preview")
    print_fields(facts)
    if preview:
        tell("the beginning, as its event has it:")
        print_value(preview)
    tell(f"next: noetl results get {uri}")


@results.command()
@_uri
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="Write it here.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["stored", "json", "arrow"]),
    default="stored",
    show_default=True,
    help="The stored bytes, the value as JSON, or the stored bytes if they are an Arrow file.",
)
def get(uri: str, output: Path | None, form: str) -> None:
    """Write a result to stdout or to a file. Its digest is checked on the way.

    \b
    noetl results get URI --as arrow --output rows.feather
    """
    asyncio.run(_get(uri, output, form))


async def _list(execution: ExecutionId) -> list[dict[str, Any]]:
    settings = load_settings()
    async with _opened() as (platform, scope), open_repairs(settings, platform) as repairs:
        return [_facts(named.reference) async for named in repairs.named(scope, execution)]


async def _show(uri: str) -> dict[str, Any]:
    async with _opened() as (platform, scope):
        found = await _find(platform, scope, uri)
        envelope = found.recorded.envelope
        told = {"event": envelope.event_type, "event_id": envelope.event_id}
        if found.reference is None or found.task is not None:
            value = await value_of(found, platform.results, scope)
            return {**_facts(_in_event(uri, value)), **told, **_place(found), "preview": value}
        reference, key = found.reference, _key(platform, scope, found.reference)
        stored = await platform.objects.head(key)
        return {
            **_facts(reference),
            "sha256": reference.sha256,
            "encoder": reference.encoder,
            "arrow_version": reference.arrow_version,
            **told,
            "place": platform.objects.url(key),
            "stored_bytes": None if stored is None else stored.byte_length,
            "preview": _preview(found),
        }


async def _get(uri: str, output: Path | None, form: str) -> None:
    async with _opened() as (platform, scope):
        found = await _find(platform, scope, uri)
        reference = found.reference
        is_object = reference is not None and found.task is None
        media_type = reference.media_type if reference and is_object else JSON_MEDIA_TYPE
        if form == "arrow" and media_type != FEATHER_MEDIA_TYPE:
            raise RequestInvalid(f"{uri} is {media_type}, not an Arrow file; use --as json")
        if reference is None or not is_object or form == "json":
            chunks = _as_json(platform, scope, found)
        else:
            chunks = _stored(platform, scope, reference)
        await _written(chunks, output)
    if output is not None:
        tell(f"written to {output}")


async def _written(chunks: AsyncIterator[bytes], output: Path | None) -> None:
    """A file is whole or not there; what went to stdout can only be said to be wrong."""
    if output is None:
        await _drained(chunks, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
        return
    draft = output.with_name(f".{output.name}.part")
    try:
        with draft.open("wb") as file:
            await _drained(chunks, file.write)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)


async def _drained(chunks: AsyncIterator[bytes], write: Callable[[bytes], object]) -> None:
    async for chunk in chunks:
        write(chunk)


async def _stored(
    platform: Platform, scope: Scope, reference: ResultReference
) -> AsyncIterator[bytes]:
    fingerprint = Fingerprint()
    try:
        async for chunk in platform.objects.read(_key(platform, scope, reference)):
            fingerprint.add(chunk)
            yield chunk
    except ObjectMissing as error:
        raise PayloadMissing(reference.uri) from error
    actual = fingerprint.stored().sha256
    if actual != reference.sha256:
        raise PayloadCorrupt(reference.uri, expected=reference.sha256 or "", actual=actual)


async def _as_json(platform: Platform, scope: Scope, found: FoundResult) -> AsyncIterator[bytes]:
    value = await value_of(found, platform.results, scope)
    yield msgspec.json.encode(value, order="sorted") + b"\n"


async def _find(platform: Platform, scope: Scope, uri: str) -> FoundResult:
    """By the events of its execution: they know what proves it. Raises NameInvalid."""
    found = await find_result(platform.log, platform.results, scope, uri)
    if found is not None:
        return found
    execution = parse_results(uri).execution_id
    raise RequestInvalid(
        f"no event of execution {execution} tells of {uri}; see noetl results list {execution}"
        " and noetl executions trace"
    )


def _key(platform: Platform, scope: Scope, reference: ResultReference) -> str:
    return key_of(reference, scope, platform.results.placement) or ""


def _facts(reference: ResultReference) -> dict[str, Any]:
    return {
        "uri": reference.uri,
        "media_type": reference.media_type,
        "byte_length": reference.byte_length,
        "row_count": reference.row_count,
    }


def _in_event(uri: str, value: Any) -> ResultReference:
    """As if it were an object of its own."""
    length = len(msgspec.json.encode(value))
    return ResultReference(
        type="object_store", uri=uri, media_type=JSON_MEDIA_TYPE, byte_length=length
    )


def _place(found: FoundResult) -> dict[str, str]:
    if found.reference is None:
        return {"place": "in its event"}
    return {"place": f"in {found.reference.uri}"}


def _preview(found: FoundResult) -> Any:
    """What the event holds beside the reference: the short form, or a frame's first rows."""
    event = found.recorded.event
    result = getattr(event, "result", None)
    if isinstance(result, Result):
        return result.context.get("extracted")
    return getattr(event, "outcomes", None)


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Platform, Scope]]:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        yield platform, settings.scope
