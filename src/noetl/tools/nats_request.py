"""What every operation on NATS asks of its call: names, numbers, flags, and values as bytes."""

import base64
import binascii
import re
from typing import Any

import msgspec
from nats.js import JetStreamContext

from noetl.domain.playbook.wording import shown
from noetl.ports.tool import ToolCall
from noetl.tools.failures import failed

BUCKET = re.compile(r"[A-Za-z0-9_-]+")
KEY = re.compile(r"[-/_=A-Za-z0-9]([-/_=.A-Za-z0-9]*[-/_=A-Za-z0-9])?")
STREAM = re.compile(r"[^\s.*>/\\]+")

_JSON_STARTS = (b"{", b"[")


class NatsRequest:
    def __init__(self, jetstream: JetStreamContext, call: ToolCall) -> None:
        self.jetstream = jetstream
        self.key = call.idempotency_key
        self._parameters = call.parameters

    def get(self, name: str) -> Any:
        return self._parameters.get(name)

    def has(self, name: str) -> bool:
        return self._parameters.get(name) not in (None, "")

    def text(self, name: str, pattern: re.Pattern[str] | None = None) -> str:
        given = self._parameters.get(name)
        if given is None or given == "":
            raise self._mistake(f"needs `{name}`")
        if pattern is not None and pattern.fullmatch(str(given)) is None:
            raise self._mistake(f"takes no {name} like {shown(given)!r}")
        return str(given)

    def number(self, name: str, otherwise: float) -> float:
        given = self._parameters.get(name)
        try:
            return otherwise if given is None or given == "" else float(given)
        except (TypeError, ValueError):
            raise self._mistake(f"needs a number for `{name}`, not {shown(given)!r}") from None

    def whole(self, name: str, otherwise: int, most: int) -> int:
        number = int(self.number(name, otherwise))
        if not 1 <= number <= most:
            raise self._mistake(f"takes {name} from 1 to {most}, not {number}")
        return number

    def flag(self, name: str, otherwise: bool) -> bool:
        return flag(self._parameters.get(name), otherwise)

    def encoded(self, name: str) -> bytes:
        """Text as it is, or from base64 where `encoding` says so; anything else as JSON."""
        if name not in self._parameters:
            raise self._mistake(f"needs `{name}`")
        value = self._parameters[name]
        if not isinstance(value, str):
            return msgspec.json.encode(value)
        if self._parameters.get("encoding") != "base64":
            return value.encode()
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise self._mistake(f"needs base64 in `{name}`, as `encoding` says") from None

    def decoded(self, data: bytes | None) -> Any:
        """Objects and lists from their JSON; other text as it is; base64 where it is no text."""
        data = data or b""
        if self._parameters.get("encoding") == "base64":
            return base64.b64encode(data).decode()
        if data.startswith(_JSON_STARTS):
            try:
                return msgspec.json.decode(data)
            except msgspec.DecodeError:
                pass  # it only looks like JSON
        return as_text(data)

    def _mistake(self, words: str) -> Exception:
        return failed("client_error", f"NATS {self._parameters['operation']} {words}")


def as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def flag(given: Any, otherwise: bool) -> bool:
    """A template may have left the word in place of the truth value."""
    if given is None or given == "":
        return otherwise
    return str(given).lower() not in ("false", "0", "no")
