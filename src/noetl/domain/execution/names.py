"""Names that `set` writes: dotted paths into a map that is replaced, never changed in place."""

from collections.abc import Mapping
from typing import Any


def assigned(names: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy in which the path has the value; whoever held the old map still sees the old one."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**names, name: value}
    inner = names.get(name)
    return {**names, name: assigned(inner if isinstance(inner, dict) else {}, rest, value)}


def all_assigned(names: dict[str, Any], writes: Mapping[str, Any]) -> dict[str, Any]:
    for path, value in writes.items():
        names = assigned(names, path, value)
    return names
