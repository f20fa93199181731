"""Chance without dice: numbers and ids from a hash of coordinates, the same at every asking."""

import hashlib
import json
from dataclasses import dataclass
from typing import Self
from uuid import UUID

_FRACTION_BITS = 53  # what a float holds exactly


@dataclass(frozen=True, slots=True)
class Chance:
    """The control plane seeds it with coordinates, a worker with real entropy for each render."""

    seed: str

    def at(self, *coordinates: str | int) -> Self:
        """Another chance, for a place inside this one."""
        return type(self)(json.dumps([self.seed, *coordinates]))

    def fraction(self, draw: int) -> float:
        """At least 0, less than 1."""
        number = int.from_bytes(self._digest(draw)[:8], "big") >> (64 - _FRACTION_BITS)
        return number / float(1 << _FRACTION_BITS)

    def uuid(self, draw: int) -> str:
        return str(UUID(bytes=self._digest(draw)[:16], version=4))

    def _digest(self, draw: int) -> bytes:
        return hashlib.sha256(json.dumps([self.seed, draw]).encode()).digest()
