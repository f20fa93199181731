"""The registry of upcasters, and the digest that tells two registries apart."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from noetl.kernel.canonical_json import checksum
from noetl.kernel.errors import UpcasterRefused

Body = dict[str, Any]
Lift = Callable[[Body], Body]


class Upcaster(msgspec.Struct, frozen=True):
    """Pure: the old body in, the new body out, nothing else touched."""

    schema_name: str
    from_version: int
    to_version: int
    lift: Lift


class UpcasterRegistry:
    """Immutable once built, so a replay can name the registry it used by its digest."""

    def __init__(self, upcasters: Iterable[Upcaster] = ()) -> None:
        self._by_step: dict[tuple[str, int], Upcaster] = {}
        for upcaster in upcasters:
            self._add(upcaster)
        self.digest = checksum(sorted([name, version] for name, version in self._by_step))

    def _add(self, upcaster: Upcaster) -> None:
        step = (upcaster.schema_name, upcaster.from_version)
        name = f"{upcaster.schema_name} from version {upcaster.from_version}"
        if upcaster.from_version < 1 or upcaster.to_version != upcaster.from_version + 1:
            raise UpcasterRefused(
                f"{name} goes to version {upcaster.to_version}; an upcaster lifts by exactly one"
            )
        if step in self._by_step:
            raise UpcasterRefused(f"{name} is registered twice; keep the one that was released")
        self._by_step[step] = upcaster

    def lift(self, schema_name: str, version: int, body: Body) -> tuple[int, Body]:
        """As far up as the registry goes: the version reached and the body there."""
        while (upcaster := self._by_step.get((schema_name, version))) is not None:
            body = upcaster.lift(body)
            version = upcaster.to_version
        return version, body
