"""Large results that stay where they are: what is known of them, and what has to be fetched.

The law: whatever a reference answers, the whole value would answer too. Where its block is
shorter than the truth it raises `NeedsPayload`, it never guesses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from noetl.templates.errors import Need, NeedsPayload, Path
from noetl.templates.lookup import MISSING, Lookup

Kind = Literal["object", "list", "text", "unknown"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a block is shorter than the value that it stands for."""

    length: int | None = None  # the true one; None: whole at this level
    within: Mapping[str | int, "Cut"] = field(default_factory=dict)


UNKNOWN = Cut()
"""The cut of a payload of which nothing is known."""


class Reference(Lookup):
    """A stand-in for a value in the payload store, with the part of it that is at hand."""

    __slots__ = ("block", "cut", "path", "payload")

    def __init__(
        self, payload: str, block: Any = None, cut: Cut = UNKNOWN, *, path: Path = ()
    ) -> None:
        self.payload = payload
        self.block = block
        self.cut = cut
        self.path = path

    @property
    def kind(self) -> Kind:
        if self.cut is UNKNOWN:
            return "unknown"
        if isinstance(self.block, dict):
            return "object"
        return "list" if isinstance(self.block, list) else "text"

    def known_kind(self) -> Kind:
        return self._need() if self.kind == "unknown" else self.kind

    @property
    def is_whole_here(self) -> bool:
        """Every key or position at this level is known, if not everything below."""
        return self.kind in ("object", "list") and self.cut.length in (None, len(self.block))

    @property
    def _place(self) -> Need:
        return Need(self.payload, self.path)

    def look_up(self, key: Any) -> Any:
        if self.kind == "object":
            return self._member(key)
        if self.kind == "unknown":
            self._need(key)
        if not isinstance(key, int):
            return MISSING
        return self._element(key)

    def sliced(self, bounds: slice) -> Any:
        """Answered when all of it lies within the known beginning."""
        if self.kind != "list":
            self._need()
        positions = range(*bounds.indices(len(self)))
        if any(position >= len(self.block) for position in positions):
            self._need()
        return [self._child(position) for position in positions]

    def items(self) -> list[tuple[str, Any]]:
        """Keys and values of an object that is whole at this level."""
        if self.kind != "object" or not self.is_whole_here:
            self._need()
        return [(key, self._child(key)) for key in self.block]

    def _member(self, key: Any) -> Any:
        if not isinstance(key, str):
            return MISSING
        if key in self.block:
            return self._child(key)
        return MISSING if self.is_whole_here else self._need(key)

    def _element(self, position: int) -> Any:
        length = len(self)
        from_start = position + length if position < 0 else position
        if not 0 <= from_start < length:
            return MISSING
        if self.kind == "list" and from_start < len(self.block):
            return self._child(from_start)
        return self._need(from_start)

    def _child(self, key: str | int) -> Any:
        value = self.block[key]
        cut = self.cut.within.get(key)
        if cut is None:
            return value
        return Reference(self.payload, value, cut, path=(*self.path, key))

    def _need(self, *further: str | int) -> NoReturn:
        raise NeedsPayload(Need(self.payload, (*self.path, *further)))

    # What Python's own operators and functions ask. Everything not answered here is a need.

    def __len__(self) -> int:
        if self.kind == "unknown":
            self._need()
        return len(self.block) if self.cut.length is None else self.cut.length

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        if not self.is_whole_here:
            self._need()
        return iter(
            [self._child(at) for at in range(len(self))] if self.kind == "list" else self.block
        )

    def __contains__(self, item: object) -> bool:
        if self.kind == "object" and (item in self.block or self.is_whole_here):
            return item in self.block
        return self._need()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Reference) and self._place == other._place:
            return True
        if self._is_surely_not(other):
            return False
        return self._need()

    def _is_surely_not(self, other: object) -> bool:
        """Another type or another length is enough to know."""
        match self.kind:
            case "object":
                return not isinstance(other, (Mapping, Reference)) or len(other) != len(self)
            case "list":
                return not isinstance(other, (list, Reference)) or len(other) != len(self)
            case "text":
                return not isinstance(other, (str, Reference)) or len(other) != len(self)
            case _:
                return False

    def __hash__(self) -> int:
        return hash(self._place)

    def __repr__(self) -> str:
        return f"Reference({self.payload!r}, path={self.path!r})"

    def _refuse(self, *_operands: object) -> NoReturn:
        self._need()

    __str__ = __format__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = _refuse
