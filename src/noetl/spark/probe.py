"""A slot that only says where it is: proof that jobs run where they are meant to."""

import platform

import msgspec

from noetl.spark.slot_task import versions
from noetl.spark.slots import Slot


class Whereabouts(msgspec.Struct, frozen=True):
    host: str
    versions: dict[str, str]


def where(slot: Slot, argument: bytes) -> bytes:
    del slot, argument
    return msgspec.json.encode(Whereabouts(platform.node(), versions()))
