"""Stored credentials for the tasks that name them, looked up when they are needed."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from noetl.domain.credential import OpenCredential
from noetl.domain.playbook.values import Credential
from noetl.kernel.errors import CredentialMissing
from noetl.kernel.scope import Scope
from noetl.pipeline.failures import failed
from noetl.pipeline.sensitive import secrets_of
from noetl.ports.clock import Clock
from noetl.ports.credential_store import CredentialStore
from noetl.templates.secret import Secret

KEPT_SECONDS: Final = 30.0
"""A changed credential is noticed within this time; the rows of a frame share one lookup."""

KEPT_MAX: Final = 256

Evaluate = Callable[[Any], Awaitable[Any]]
"""Renders what an author wrote, with secrets in the open."""

# Words about a credential, not of it: they never replace a field that it has.
_ABOUT: Final = frozenset({"source", "service", "scope", "provider"})
_NAMES: Final = ("auth", "credential")
_NAMED_BY: Final = ("key", "credential", "name")


class Opened(NamedTuple):
    credential: OpenCredential
    secrets: tuple[Secret, ...]


class Credentials:
    """Lookups in a credential store, each kept for a short time."""

    def __init__(self, store: CredentialStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[tuple[Scope, str], tuple[float, Opened]] = OrderedDict()

    async def named(self, scope: Scope, name: str) -> Opened:
        """Raises CredentialError, StoreUnavailable."""
        until, known = self._kept.get((scope, name), (0.0, None))
        now = self._clock.monotonic()
        if known is not None and now < until:
            return known
        found = await self._store.get(scope, name)
        if found is None:
            raise CredentialMissing(name)
        made = Opened(found, secrets_of(found.data))
        self._kept[scope, name] = (now + KEPT_SECONDS, made)
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return made

    def forget(self, scope: Scope, name: str) -> None:
        """The target refused it: the next lookup asks the store."""
        self._kept.pop((scope, name), None)

    async def opened(self, scope: Scope, wanted: Credential, evaluate: Evaluate) -> Opened:
        """What a task asked for: a stored credential, options over it, or options alone."""
        options = await evaluate(wanted.options) if wanted.options else {}
        kind = await evaluate(wanted.type) if wanted.type else wanted.type
        if wanted.name is None:
            named = OpenCredential(name=wanted.alias or "", type=kind or "", data=options)
            return Opened(named, secrets_of(options))
        name = await evaluate(wanted.name)
        if not isinstance(name, str) or not name:
            raise failed("auth", f"{wanted.name!r} gave no name of a credential; check its values")
        known = await self.named(scope, name)
        if not options and kind in (None, known.credential.type):
            return known
        stored = known.credential
        given = {
            key: options[key] for key in options if key not in _ABOUT or key not in stored.data
        }
        data = {**stored.data, **given}
        return Opened(
            OpenCredential(name=stored.name, type=kind or stored.type, data=data),
            (*known.secrets, *secrets_of(given)),
        )


def inside(parameters: Mapping[str, Any], parts: tuple[str, ...]) -> list[Credential]:
    """Credentials named inside some of a tool's parameters, by the name of the parameter."""
    found = []
    for part in parts:
        block = parameters.get(part)
        named = _named(block) if isinstance(block, Mapping) else None
        if isinstance(named, str) and named:
            found.append(Credential(name=named, alias=part))
        elif isinstance(named, Mapping):
            found.append(_spelled_out(named, part))
    return found


def _named(block: Mapping[str, Any]) -> Any:
    return next((block[key] for key in _NAMES if block.get(key)), None)


def _spelled_out(written: Mapping[str, Any], alias: str) -> Credential:
    key = next((each for each in _NAMED_BY if isinstance(written.get(each), str)), None)
    return Credential(
        name=None if key is None else written[key],
        alias=alias,
        type=written.get("type"),
        options={each: written[each] for each in written if each not in (key, "type")},
    )
