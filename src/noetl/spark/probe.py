"""A slot that only says where it is, and whom it reaches: proof that jobs run as they are meant."""

import platform
import urllib.error
import urllib.request

import msgspec

from noetl.spark.slot_task import versions
from noetl.spark.slots import Slot

ANSWER_SECONDS_MAX = 10.0


class Whereabouts(msgspec.Struct, frozen=True):
    host: str
    versions: dict[str, str]
    trouble: str | None = None  # why the server could not be reached; None: it was, or need not be


def where(slot: Slot, argument: bytes) -> bytes:
    """`argument` is the server's address as slots have it, or nothing."""
    del slot
    trouble = _trouble(argument.decode()) if argument else None
    return msgspec.json.encode(Whereabouts(platform.node(), versions(), trouble))


def _trouble(server: str) -> str | None:
    try:
        address = f"{server.rstrip('/')}/health"
        with urllib.request.urlopen(address, timeout=ANSWER_SECONDS_MAX):
            return None
    except (urllib.error.URLError, OSError, ValueError) as error:
        return str(error)
