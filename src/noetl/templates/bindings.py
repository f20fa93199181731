"""The names an expression can see, with the time and the chance it may ask for."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from noetl.kernel.instant import Instant
from noetl.templates.chance import Chance
from noetl.templates.lookup import MISSING

Names = Mapping[str, Any]


class Bindings(msgspec.Struct, frozen=True, kw_only=True):
    """Names in three ranks: the engine's own hide the author's, which hide merely handy ones.

    On the control plane `moment` is the time of the newest folded event and `chance` hashes
    coordinates, so that asking again gives the same answer. On a worker both are real, and made
    for a render that asks: most do not.
    """

    own: Names = {}
    layers: tuple[Names, ...] = ()  # the first that has a name answers
    handy: Names = {}
    moment: Instant | Callable[[], Instant] | None = None
    chance: Chance | Callable[[], Chance] | None = None

    def find(self, name: str) -> Any:
        if name in self.own:
            return self.own[name]
        for layer in self.layers:
            if name in layer:
                return layer[name]
        return self.handy.get(name, MISSING)

    def define(self, names: Names) -> "Bindings":
        """With further names of the engine."""
        own = {**self.own, **names}
        return self._with(own, self.layers, self.handy)

    def over(self, names: Names) -> "Bindings":
        """With further names of the author, over the ones before."""
        return self._with(self.own, (names, *self.layers), self.handy)

    def offer(self, names: Names) -> "Bindings":
        """With further names that give way to any other."""
        return self._with(self.own, self.layers, {**self.handy, **names})

    def add(self, own: Names, layers: tuple[Names, ...], handy: Names) -> "Bindings":
        """All three at once: names of rows and tasks are made for every one of them."""
        return Bindings(
            own={**self.own, **own},
            layers=(*layers, *self.layers),
            handy={**self.handy, **handy},
            moment=self.moment,
            chance=self.chance,
        )

    def asking(
        self,
        moment: Instant | Callable[[], Instant] | None,
        chance: Chance | Callable[[], Chance] | None,
    ) -> "Bindings":
        """The same names, with another time and chance to ask for."""
        return Bindings(
            own=self.own, layers=self.layers, handy=self.handy, moment=moment, chance=chance
        )

    def at(self, *coordinates: str | int) -> "Bindings":
        """The same names at another place, where chance falls differently; real chance does so
        by itself."""
        if not isinstance(self.chance, Chance):
            return self
        return Bindings(
            own=self.own,
            layers=self.layers,
            handy=self.handy,
            moment=self.moment,
            chance=self.chance.at(*coordinates),
        )

    def _with(self, own: Names, layers: tuple[Names, ...], handy: Names) -> "Bindings":
        return Bindings(own=own, layers=layers, handy=handy, moment=self.moment, chance=self.chance)
