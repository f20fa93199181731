"""How far two places are apart, and whether that is near enough."""

from typing import Literal, get_args

from noetl.domain.naming.locator import Locality

Distance = Literal["node", "zone", "region", "cluster", "any"]
"""The nearest thing that two places have in common; `any` is nothing that is known."""

Preference = Literal["node", "zone", "region", "any"]
"""Up to here places are told apart; those that are nearer still are all alike."""

_RISING: tuple[Distance, ...] = get_args(Distance)
_WITHIN: dict[Distance, tuple[str, ...]] = {
    "node": ("region", "zone", "cluster"),
    "zone": ("region",),
    "region": (),
    "cluster": (),
}


def distance(one: Locality, two: Locality) -> Distance:
    """Two nodes of one name are the same one, unless they are known to be in different places."""
    for level, around in _WITHIN.items():
        name = getattr(one, level)
        if name is None or name != getattr(two, level):
            continue
        if not any(_differ(getattr(one, place), getattr(two, place)) for place in around):
            return level
    return "any"


def is_within(reached: Distance, bound: Distance) -> bool:
    return _RISING.index(reached) <= _RISING.index(bound)


def rank(reached: Distance, preference: Preference) -> int:
    """Lower is better; what is nearer than the preference asks for counts no more than that."""
    return max(_RISING.index(reached), _RISING.index(preference))


def _differ(one: str | None, two: str | None) -> bool:
    return one is not None and two is not None and one != two
