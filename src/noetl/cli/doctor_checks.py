"""What `noetl doctor` looks at, one function each. Nothing is made that was not there."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from noetl.bootstrap.home import Home
from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.settings import Settings, load_settings
from noetl.cli.doctor_findings import Finding
from noetl.cli.doctor_spark import look_at_spark, try_spark
from noetl.cli.log import last_position
from noetl.cli.output import count
from noetl.kernel import instant
from noetl.kernel.errors import (
    CredentialUnreadable,
    EventCorrupt,
    EventUnreadable,
    LogMissing,
    NoETLError,
    SettingInvalid,
)
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.wire.codec import open_stored

PYTHON_MIN = (3, 11)
PYTHON_BELOW = (3, 14)
VERIFIED_EVENTS_MAX = 1_000
DISK_BYTES_MIN = 100_000_000
DISK_BYTES_COMFORTABLE = 2_000_000_000
CLOCK_BACK_SECONDS_MAX = 5.0
BUILT_AT = Instant("2026-01-01T00:00:00.000000Z")
CREDENTIALS_OPENED_MAX = 100
_STORE = "check NOETL_PAYLOAD_URL: that it is the right place, and that you may write there"
_DAMAGE = "see all: noetl log verify; then bring the log back from a copy"
_OWN_HOME = "set NOETL_HOME to a folder of your own"
_EXTRAS = {"duckdb": "duckdb", "asyncpg": "postgres", "nats": "nats"}


async def examine(*, with_spark: bool = False) -> list[Finding]:
    """With Spark, a session is started and ended again; that takes a while."""
    findings = [check_python(sys.version_info[:2])]
    try:
        settings = load_settings()
    except SettingInvalid as error:
        return [*findings, Finding("settings", "bad", str(error), "see docs/reference/settings.md")]
    findings.append(_settings(settings))
    findings.append(check_home(Path(settings.home)))
    findings.append(check_disk(shutil.disk_usage(_nearest(Path(settings.home))).free))
    findings.append(_extras(settings))
    findings += look_at_spark(settings)
    if with_spark:
        findings += await try_spark(settings)
    return [*findings, *await _stores(settings)]


def check_python(version: tuple[int, ...]) -> Finding:
    said = ".".join(map(str, version))
    if PYTHON_MIN <= version < PYTHON_BELOW:
        return Finding("python", "ok", said)
    return Finding("python", "bad", f"{said} is not supported", "use Python 3.11, 3.12 or 3.13")


def _settings(settings: Settings) -> Finding:
    log = settings.log_url.partition("@")[2] or settings.log_url  # an address may hold a password
    stores = f"log {log}, payloads {settings.payload_url.partition('?')[0]}"
    scope = f"tenant {settings.tenant_id}, organization {settings.organization_id}"
    return Finding("settings", "ok", f"{stores}, {scope}")


def check_home(folder: Path) -> Finding:
    if not folder.exists():
        if os.access(_nearest(folder), os.W_OK):
            return Finding("home", "ok", f"{folder} is made at the first run")
        return Finding("home", "bad", f"{folder} cannot be made", _OWN_HOME)
    if not folder.is_dir():
        return Finding("home", "bad", f"{folder} is not a folder", _OWN_HOME)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding("home", "bad", f"{folder} is read-only for you", _OWN_HOME)
    home = Home(folder)
    if not home.is_held():
        return Finding("home", "ok", f"{folder} is writable and free")
    holder = home.holder()
    who = "another process" if holder is None else f"process {holder.pid}"
    address = None if holder is None else holder.address
    listens = "does not listen" if address is None else f"listens at {address}"
    return Finding("home", "ok", f"{folder} is writable; {who} holds it and {listens}")


def check_disk(free_bytes: int) -> Finding:
    said = f"{free_bytes / 1e9:,.1f} GB free"
    if free_bytes < DISK_BYTES_MIN:
        return Finding("disk", "bad", said, "make room: a full disk stops every execution")
    if free_bytes < DISK_BYTES_COMFORTABLE:
        return Finding("disk", "warn", said, "make room soon")
    return Finding("disk", "ok", said)


def _extras(settings: Settings) -> Finding:
    found = {module: find_spec(module) is not None for module in _EXTRAS}
    lacking = [_EXTRAS[module] for module, is_there in found.items() if not is_there]
    said = f"installed: {', '.join(module for module in found if found[module]) or 'none'}"
    if settings.log_url.startswith("postgres") and not found["asyncpg"]:
        message = "NOETL_LOG_URL is a PostgreSQL, and its driver is not installed"
        return Finding("extras", "bad", message, "pip install 'noetl[postgres]'")
    advice = f"when needed: pip install 'noetl[{','.join(lacking)}]'" if lacking else None
    return Finding("extras", "ok", said, advice)


async def _stores(settings: Settings) -> list[Finding]:
    checks = (_log, _payloads, _clock, _credentials)
    try:
        async with open_platform(settings, create=False) as platform:
            return [await check(platform, settings.scope) for check in checks]
    except LogMissing:
        return [Finding("log", "warn", "there is none yet", "it is made at the first run")]
    except NoETLError as error:
        advice = None if isinstance(error, SettingInvalid) else _store_advice(settings)
        return [Finding("stores", "bad", f"{error.code}: {error}", advice)]


def _store_advice(settings: Settings) -> str:
    if settings.log_url.startswith("postgres"):
        return "check that the server of NOETL_LOG_URL runs and lets you in"
    return "check NOETL_HOME, NOETL_LOG_URL and NOETL_PAYLOAD_URL"


async def _log(platform: Platform, _scope: Scope) -> Finding:
    last = await last_position(platform.log)
    identity = await platform.log.identity()
    after, events = max(0, last - VERIFIED_EVENTS_MAX), 0
    try:
        for stored in await platform.log.tail(after_position=after, limit=VERIFIED_EVENTS_MAX):
            open_stored(stored)
            events += 1
    except (EventCorrupt, EventUnreadable) as error:
        return Finding("log", "bad", f"{error.code}: {error}", _DAMAGE)
    return Finding("log", "ok", f"{identity}, {last} events, the last {events} are sound")


async def _payloads(platform: Platform, scope: Scope) -> Finding:
    """Bytes that nobody else has, so that removing them removes nothing of anybody."""
    probe = f"noetl doctor {platform.new_id()}".encode()
    try:
        reference = await platform.payloads.put(scope, probe, "text/plain")
        read = b"".join([chunk async for chunk in platform.payloads.get(reference)])
        await platform.payloads.delete(reference)
    except NoETLError as error:
        return Finding("payloads", "bad", f"{error.code}: {error}", _STORE)
    if read != probe or await platform.payloads.exists(reference):
        return Finding("payloads", "bad", "what was written is not what is there", _STORE)
    return Finding("payloads", "ok", "written, read and removed a probe")


async def _clock(platform: Platform, _scope: Scope) -> Finding:
    last = await last_position(platform.log)
    newest = await platform.log.tail(after_position=max(0, last - 1), limit=1)
    taken_in = newest[0].ingest_time if newest else None
    return check_clock(platform.clock(), taken_in)


def check_clock(now: Instant, newest: Instant | None) -> Finding:
    if now < BUILT_AT:
        return Finding("clock", "bad", f"it says {now}", "set the clock of this machine")
    if newest is not None:
        behind = instant.seconds_between(now, newest)
        if behind > CLOCK_BACK_SECONDS_MAX:
            message = f"it is {behind:.0f} s behind the newest event"
            return Finding("clock", "warn", message, "check the time service of this machine")
    return Finding("clock", "ok", now)


async def _credentials(platform: Platform, scope: Scope) -> Finding:
    """The key is right when it opens what is there."""
    entries = await platform.credentials.list(scope)
    for entry in entries[:CREDENTIALS_OPENED_MAX]:
        try:
            await platform.credentials.get(scope, entry.name)
        except CredentialUnreadable as error:
            return Finding("secrets", "bad", f"{error.code}: {error}")
    return Finding("secrets", "ok", count(len(entries), "credential"))


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that is there."""
    return next((each for each in (folder, *folder.absolute().parents) if each.exists()), Path("/"))
