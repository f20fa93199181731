"""Names that `set` writes: dotted paths into a map that is replaced, never changed in place."""

from collections.abc import Mapping
from typing import Any

NESTED_MAX = 32
"""Names deep; what a longer path still has then is one name, so that no path stops the fold."""


WRITES_BYTES_MAX = 65_536
"""What `set` may put into the log at once; larger values stay results and are read by name."""


def assigned(
    names: dict[str, Any], path: str, value: Any, nested_max: int = NESTED_MAX
) -> dict[str, Any]:
    """A copy in which the path has the value; whoever held the old map still sees the old one."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**names, name: value}
    if nested_max <= 1:
        return {**names, path: value}
    inner = names.get(name)
    below = assigned(inner if isinstance(inner, dict) else {}, rest, value, nested_max - 1)
    return {**names, name: below}


def all_assigned(names: dict[str, Any], writes: Mapping[str, Any]) -> dict[str, Any]:
    for path, value in writes.items():
        names = assigned(names, path, value)
    return names
