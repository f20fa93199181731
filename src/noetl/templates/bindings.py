"""The names an expression can see, with the time and the chance it may ask for."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from noetl.kernel.instant import Instant
from noetl.templates.chance import Chance
from noetl.templates.lookup import MISSING

Names = Mapping[str, Any]
"""What is made only if somebody asks for it is in there as a `Late`."""


class Late:
    """A value that is made when its name is first asked for: most templates ask for few names."""

    __slots__ = ("_from", "_made", "_make")

    def __init__(self, make: Callable[[Any], Any], of: Any) -> None:
        self._make = make
        self._from = of
        self._made: Any = MISSING

    def made(self) -> Any:
        if self._made is MISSING:
            self._made = self._make(self._from)
        return self._made


class Bindings(msgspec.Struct, frozen=True, kw_only=True):
    """Names in three ranks: the engine's own hide the author's, which hide merely handy ones.

    A rank is a row of maps, the first that has a name answers: names of rows and tasks are put
    before those they share with others, and nothing is copied.

    On the control plane `moment` is the time of the newest folded event and `chance` hashes
    coordinates, so that asking again gives the same answer. On a worker both are real, and made
    for a render that asks: most do not.
    """

    own: tuple[Names, ...] = ()
    layers: tuple[Names, ...] = ()
    handy: tuple[Names, ...] = ()
    moment: Instant | Callable[[], Instant] | None = None
    chance: Chance | Callable[[], Chance] | None = None

    def find(self, name: str) -> Any:
        for rank in (self.own, self.layers, self.handy):
            for names in rank:
                if name in names:
                    found = names[name]
                    return found.made() if type(found) is Late else found
        return MISSING

    def define(self, names: Names) -> "Bindings":
        """With further names of the engine."""
        return self.add(names, (), {})

    def over(self, names: Names) -> "Bindings":
        """With further names of the author, over the ones before."""
        return self.add({}, (names,), {})

    def offer(self, names: Names) -> "Bindings":
        """With further names that give way to any other."""
        return self.add({}, (), names)

    def add(self, own: Names, layers: tuple[Names, ...], handy: Names) -> "Bindings":
        """All three at once: names of rows and tasks are made for every one of them."""
        return Bindings(
            own=(own, *self.own) if own else self.own,
            layers=(*layers, *self.layers) if layers else self.layers,
            handy=(handy, *self.handy) if handy else self.handy,
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


def all_of(rank: tuple[Names, ...]) -> dict[str, Any]:
    """Every name of some maps, of which the first answers, with its value."""
    found: dict[str, Any] = {}
    for names in reversed(rank):
        for name in names:
            value = names[name]
            found[name] = value.made() if type(value) is Late else value
    return found
