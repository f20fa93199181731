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
from noetl.results.dataset import ROWS
from noetl.results.tiers import FEATHER_MEDIA_TYPE
from noetl.runtime.results_repair import ResultRepairs
from noetl.runtime.results_repair_objects import Named
from noetl.templates.recorded import LOOP, TASKS, VALUE

_PLACES = {name: f"noetl.cli.results_upkeep:{name}" for name in ("gc", "verify")}

_uri = click.argument("uri", metavar="URI")


@click.group(commands=LazyCommands(_PLACES))
def results() -> None:
    """Look at stored results, check that they are whole, and bring back what is lost."""


@results.command(name="list")
@click.argument("execution", metavar="ID", type=ExecutionId)
@options.as_json_lines
def list_all(execution: ExecutionId, as_json: bool) -> None:
    """List what lies outside the log: large results, frames, datasets, collections, the playbook.

    Smaller results stand in their events: `noetl executions events ID`.
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
    async with _opened() as (_platform, repairs, scope):
        return [_facts(named) async for named in repairs.named(scope, execution)]


async def _show(uri: str) -> dict[str, Any]:
    async with _opened() as (platform, repairs, scope):
        named = await _find(repairs, scope, uri)
        stored = await platform.objects.head(_key(named))
        return {
            **_facts(named),
            "sha256": named.reference.sha256,
            "encoder": named.reference.encoder,
            "arrow_version": named.reference.arrow_version,
            "event": named.recorded.envelope.event_type,
            "event_id": named.recorded.envelope.event_id,
            "place": platform.objects.url(_key(named)),
            "stored_bytes": None if stored is None else stored.byte_length,
            "preview": _preview(named),
        }


async def _get(uri: str, output: Path | None, form: str) -> None:
    async with _opened() as (platform, repairs, scope):
        named = await _find(repairs, scope, uri)
        reference = named.reference
        if form == "arrow" and reference.media_type != FEATHER_MEDIA_TYPE:
            raise RequestInvalid(
                f"{uri} is {reference.media_type}, not an Arrow file; use --as json"
            )
        chunks = _stored(platform, named)
        if form == "json":
            chunks = _as_json(platform, scope, reference)
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


async def _stored(platform: Platform, named: Named) -> AsyncIterator[bytes]:
    fingerprint, reference = Fingerprint(), named.reference
    try:
        async for chunk in platform.objects.read(_key(named)):
            fingerprint.add(chunk)
            yield chunk
    except ObjectMissing as error:
        raise PayloadMissing(reference.uri) from error
    actual = fingerprint.stored().sha256
    if actual != reference.sha256:
        raise PayloadCorrupt(reference.uri, expected=reference.sha256 or "", actual=actual)


async def _as_json(
    platform: Platform, scope: Scope, reference: ResultReference
) -> AsyncIterator[bytes]:
    content = await platform.results.content(scope, reference.uri, reference)
    yield msgspec.json.encode(_value(content), order="sorted") + b"\n"


def _value(content: Any) -> Any:
    """What the content of a result stands for; that of a collection stands for itself."""
    if isinstance(content, dict):
        for part in (VALUE, TASKS, LOOP, ROWS):
            if part in content:
                return content[part]
    return content


async def _find(repairs: ResultRepairs, scope: Scope, uri: str) -> Named:
    """By the events of its execution: they know what proves it. Raises NameInvalid."""
    execution = parse_results(uri).execution_id
    async for named in repairs.named(scope, execution):
        if named.reference.uri == uri and named.key is not None:
            return named
    raise RequestInvalid(
        f"no event of execution {execution} names {uri} as stored; see noetl results list"
        f" {execution}"
    )


def _key(named: Named) -> str:
    return named.key or ""


def _facts(named: Named) -> dict[str, Any]:
    reference = named.reference
    return {
        "uri": reference.uri,
        "media_type": reference.media_type,
        "byte_length": reference.byte_length,
        "row_count": reference.row_count,
    }


def _preview(named: Named) -> Any:
    """What the event holds beside the reference: the short form, or a frame's first rows."""
    event = named.recorded.event
    result = getattr(event, "result", None)
    if isinstance(result, Result):
        return result.context.get("extracted")
    return getattr(event, "outcomes", None)


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Platform, ResultRepairs, Scope]]:
    settings = load_settings()
    async with (
        open_platform(settings, create=False) as platform,
        open_repairs(settings, platform) as repairs,
    ):
        yield platform, repairs, settings.scope
