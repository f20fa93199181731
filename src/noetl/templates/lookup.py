"""Access to data by name: the one way in for attributes, keys and positions."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Nothing under that name; unlike None, which is a value."""


class Lookup:
    """A value that answers for its own names. A class, not a Protocol: it is asked for often."""

    __slots__ = ()

    @abstractmethod
    def look_up(self, key: Any) -> Any:
        """What is under the key, or MISSING."""


def look_up(value: Any, key: Any) -> Any:
    """Data only: what Python attaches to a value is never found here."""
    try:
        if type(value) is dict:
            return value.get(key, MISSING)
        if isinstance(value, Lookup):
            return value.look_up(key)
        if isinstance(value, (list, tuple, str, range)):
            return value[key] if isinstance(key, int) else MISSING
        if isinstance(value, Mapping):
            return value.get(key, MISSING)
    except (LookupError, TypeError):  # past the end, or a key that cannot be one
        return MISSING
    return MISSING
