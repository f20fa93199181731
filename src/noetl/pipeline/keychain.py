"""`{{ keychain.<name>.<field> }}`: secrets that are looked up when a template first asks."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from noetl.domain.playbook.model import KeychainEntry
from noetl.kernel import canonical_json
from noetl.kernel.errors import CredentialMissing
from noetl.kernel.scope import Scope
from noetl.pipeline.boundary import Tools, run_tool
from noetl.pipeline.credentials import KEPT_SECONDS, Credentials, Evaluate
from noetl.pipeline.failures import failed
from noetl.pipeline.sensitive import hidden, secrets_in, secrets_of
from noetl.ports.clock import Clock
from noetl.ports.tool import ToolCall, ToolFailed
from noetl.templates.errors import Need, NeedsPayload
from noetl.templates.secret import Secret

RENEWED_SECONDS: Final = 60.0
"""With `auto_renew` a token is fetched again this long before it expires."""

TOKENS_KEPT_MAX: Final = 256
SUPPORTED: Final = "credential, bearer, static, oauth2, and secrets of stored credentials"

_PREFIX: Final = "keychain:"
_USUAL_FIELDS: Final = ("value", "secret", "token", "password", "api_key")


class Looked(NamedTuple):
    """What an entry gave: fields for templates, what to hide, and until when it may be used."""

    fields: dict[str, Any]
    secrets: tuple[Secret, ...]
    until: float


class KeychainNames(Mapping[str, Any]):
    """The entries as one row sees them. One that was not looked up yet says that it is needed."""

    def __init__(self, entries: tuple[KeychainEntry, ...]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._looked: dict[str, Looked] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._looked:
            return self._looked[name].fields
        if name not in self._entries:
            raise KeyError(name)
        raise NeedsPayload(Need(f"{_PREFIX}{name}", ()))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def needed(self, payload: str) -> KeychainEntry | None:
        """The entry that a need stands for; None: the need is for a payload."""
        return self._entries.get(payload.removeprefix(_PREFIX)) if is_entry(payload) else None

    def put(self, name: str, looked: Looked) -> None:
        self._looked[name] = looked

    def drop_expired(self, now: float) -> None:
        for name in [name for name, looked in self._looked.items() if looked.until <= now]:
            del self._looked[name]


def is_entry(payload: str) -> bool:
    return payload.startswith(_PREFIX)


class Keychain:
    """Looks entries up: in the credential store, or at an endpoint that issues tokens."""

    def __init__(self, tools: Tools, credentials: Credentials, clock: Clock) -> None:
        self._tools = tools
        self._credentials = credentials
        self._clock = clock
        self._tokens: OrderedDict[str, Looked] = OrderedDict()

    async def look_up(self, entry: KeychainEntry, call: ToolCall, evaluate: Evaluate) -> Looked:
        """Raises ToolFailed or CredentialError. `call` says for whom; the tool is always http."""
        fields = await evaluate(entry.fields)
        match entry.kind:
            case "credential" | "credential_ref":
                return await self._stored(call.scope, entry, fields.get("credential"))
            case "legacy":
                return await self._stored(call.scope, entry, fields.get("ref"))
            case "bearer":
                return self._literal({"token": str(fields.get("token") or "")})
            case "static":
                return self._literal(_map(entry, fields))
            case "secrets" | "secret_manager":
                return await self._secrets(call.scope, entry, fields)
            case "oauth2":
                return await self._token(entry, fields, call)
        message = f"the keychain entry {entry.name!r} is of kind {entry.kind!r}"
        raise failed("auth", f"{message}, which this engine cannot look up; use {SUPPORTED}")

    def _literal(self, fields: dict[str, Any]) -> Looked:
        until = self._clock.monotonic() + KEPT_SECONDS
        return Looked(hidden(fields), secrets_in(fields), until)

    async def _stored(self, scope: Scope, entry: KeychainEntry, name: Any) -> Looked:
        if not isinstance(name, str) or not name:
            raise failed("auth", f"the keychain entry {entry.name!r} names no credential")
        known = await self._credentials.named(scope, name)
        until = self._clock.monotonic() + KEPT_SECONDS
        return Looked(hidden(known.credential.data), known.secrets, until)

    async def _secrets(self, scope: Scope, entry: KeychainEntry, fields: dict[str, Any]) -> Looked:
        provider = fields.get("provider") or "credential"
        if provider != "credential":
            raise failed(
                "auth",
                f"the keychain entry {entry.name!r} has the provider {provider!r}; this engine has"
                " `provider: credential`, where a secret is named `credential/field`",
            )
        found: dict[str, Any] = {}
        for field, path in _map(entry, fields).items():
            found[field] = await self._secret(scope, field, str(path))
        return self._literal(found)

    async def _secret(self, scope: Scope, field: str, path: str) -> Any:
        """`credential/field`, or the name of a credential whose field is plain to see."""
        try:
            data = (await self._credentials.named(scope, path)).credential.data
        except CredentialMissing:
            name, slash, field = path.rpartition("/")
            if not slash:
                raise
            data = (await self._credentials.named(scope, name)).credential.data
            if field in data:
                return data[field]
            raise failed("auth", f"the credential {name!r} has no field {field!r}") from None
        if len(data) == 1:
            return next(iter(data.values()))
        usual = next((each for each in (field, *_USUAL_FIELDS) if each in data), None)
        if usual is None:
            raise failed("auth", f"the credential {path!r} has several fields; name one: {path}/…")
        return data[usual]

    async def _token(self, entry: KeychainEntry, fields: dict[str, Any], call: ToolCall) -> Looked:
        asked = canonical_json.checksum([*call.scope, entry.name, fields])
        now = self._clock.monotonic()
        known = self._tokens.get(asked)
        if known is not None and now < known.until:
            return known
        given = await self._issued(entry, fields, call)
        lifetime = given.get("expires_in")
        seconds = float(lifetime) if isinstance(lifetime, int | float) else KEPT_SECONDS
        margin = min(RENEWED_SECONDS, seconds / 2) if entry.auto_renew else 0.0
        secrets = (*secrets_of(given), *secrets_of(fields))
        looked = Looked(hidden(given), secrets, now + seconds - margin)
        self._tokens[asked] = looked
        if len(self._tokens) > TOKENS_KEPT_MAX:
            self._tokens.popitem(last=False)
        return looked

    async def _issued(
        self, entry: KeychainEntry, fields: dict[str, Any], call: ToolCall
    ) -> dict[str, Any]:
        auth, credentials = fields.get("auth"), {}
        if isinstance(auth, str) and auth:
            credentials[""] = (await self._credentials.named(call.scope, auth)).credential
        request = msgspec.structs.replace(
            call,
            kind="http",
            task=f"{_PREFIX}{entry.name}",
            parameters=_request(fields),
            credentials=credentials,
        )
        try:
            answer = await run_tool(self._tools.get("http"), request)
        except ToolFailed as error:
            message = f"the keychain entry {entry.name!r} got no token: {error.failure.message}"
            raise failed("auth", message, retryable=error.failure.retryable) from error
        body = answer.value.get("data") if isinstance(answer.value, dict) else None
        if not isinstance(body, dict):
            message = f"the keychain entry {entry.name!r} got an answer that is not a JSON object"
            raise failed("auth", f"{message}; check its endpoint")
        return body


def _map(entry: KeychainEntry, fields: dict[str, Any]) -> dict[str, Any]:
    written = fields.get("map")
    if not isinstance(written, dict):
        raise failed("auth", f"the keychain entry {entry.name!r} has no map of fields")
    return written


def _request(fields: dict[str, Any]) -> dict[str, Any]:
    headers = fields.get("headers") or {}
    is_json = any("json" in str(headers[key]).lower() for key in headers if _is_type(key))
    request = {
        "url": fields.get("endpoint"),
        "method": str(fields.get("method") or "POST").upper(),
        "headers": headers,
    }
    data = fields.get("data")
    if isinstance(data, dict):
        return {**request, "json" if is_json else "form": data}
    return request if data is None else {**request, "body": data}


def _is_type(header: Any) -> bool:
    return str(header).lower() == "content-type"
