"""One render under way: its budget, its dice, and how values become plain values or text."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import repeat
from typing import Any, NamedTuple

from jinja2 import Undefined
from jinja2.runtime import LoopContext

from noetl.kernel.instant import Instant, from_datetime, to_datetime
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.errors import (
    Need,
    NeedsPayload,
    TemplateFailed,
    TemplateRefused,
    TemplateTooLarge,
)
from noetl.templates.layered import Layered
from noetl.templates.limits import CHARS_PER_STEP, STEPS_MAX, VALUE_DEPTH_MAX, Budget
from noetl.templates.reference import Reference
from noetl.templates.secret import MASK, Secret
from noetl.templates.table_rows import TableRows

ATOMS = frozenset({str, int, float, bool, type(None)})
PLAIN = ATOMS | {dict, list}
_CONTAINERS = (dict, list, tuple, Mapping)


class Rendering:
    """Shared by all templates of one value, so that the budget holds for all of them together."""

    __slots__ = ("_chance", "_draws", "_moment", "bindings", "budget", "reveals")

    def __init__(self, bindings: Bindings, reveals: bool) -> None:
        self.bindings = bindings
        self.budget = Budget()
        self.reveals = reveals
        self._draws = 0
        self._moment: Instant | None = None
        self._chance: Chance | None = None

    def moment(self) -> datetime:
        """The same however often it is asked for."""
        if self._moment is None:
            offered = self.bindings.moment
            if offered is None:
                raise TemplateRefused("asks for the time, which is not offered here")
            self._moment = offered() if callable(offered) else offered
        return to_datetime(self._moment)

    def draw(self) -> tuple[Chance, int]:
        if self._chance is None:
            offered = self.bindings.chance
            if offered is None:
                raise TemplateRefused("asks for chance, which is not offered here")
            self._chance = offered() if callable(offered) else offered
        self._draws += 1
        return self._chance, self._draws

    def seen(self, value: Any) -> Any:
        """A value as it leaves the bindings: where secrets may be used, they are text."""
        return value.reveal() if self.reveals and isinstance(value, Secret) else value

    def passed(self, value: Any) -> Any:
        """What a filter gets that only passes values on: a reference may stay unopened."""
        if type(value) in PLAIN:
            return value
        return self.seen(value.whole if isinstance(value, Layered) else value)

    def operand(self, value: Any) -> Any:
        """What an operator or a filter may compute with."""
        value = self.passed(value)
        if isinstance(value, Reference):
            raise NeedsPayload(Need(value.payload, value.path))
        if isinstance(value, TableRows):
            self.budget.spend(len(value))
            return value.listed()
        # What is made from a hidden secret shows as one.
        return MASK if isinstance(value, Secret) else value

    def counted(self, value: Any) -> Iterable[Any]:
        """Something to loop over, paid for in advance."""
        value = self.passed(value)
        if isinstance(value, Reference) or _is_stream(value):
            value = self.listed(value)
        elif isinstance(value, (list, tuple, str, dict, range, Mapping, TableRows)):
            self.budget.spend(len(value))
        elif not isinstance(value, Undefined):
            raise TemplateFailed(f"{_kind(value)} is not a list; there is nothing to loop over")
        looped: Iterable[Any] = value
        return looped

    def listed(self, items: Iterable[Any]) -> list[Any]:
        """A list of what comes, stopped by the budget rather than by the end of memory."""
        collected = []
        for item in items:
            self.budget.spend(1)
            collected.append(item)
        return collected

    def made(self, value: Any) -> Any:
        """Account for a value that an operator or filter made."""
        if type(value) is str:
            self.budget.make(len(value))
        elif type(value) in (list, dict):
            self.budget.spend(len(value))
        return value

    def weigh(self, value: Any) -> None:
        """Pay for all parts: lists that share parts can be far larger than the memory they take."""
        for _ in _parts(value):
            self.budget.spend(1)

    def weigh_pair(self, left: Any, right: Any) -> None:
        """Pay for a comparison, which goes on at most as long as the smaller of the two."""
        for _ in zip(_parts(left), _parts(right), strict=False):
            self.budget.spend(1)

    def plain(self, value: Any, depth: int = 0) -> Any:
        """The value made of what JSON knows; references, tables and secrets stay as they are."""
        kind = type(value)
        if depth == 0 and self._is_plain(value):
            return value
        if kind is str:
            self.budget.make(len(value))  # before many references to one text are written out
            return value
        if kind in ATOMS:
            return value
        if kind is list or isinstance(value, (tuple, range)):
            self._descend(len(value), depth)
            return [self.plain(item, depth + 1) for item in value]
        if kind is dict or isinstance(value, Mapping):
            return self._plain_object(value, depth)
        return self._plain_other(value, depth)

    def _is_plain(self, value: Any) -> bool:
        """The quick look that most values pass: they are paid for, and need no copy."""
        weight = _plain_weight(value)
        if weight is None:
            return False
        self.budget.spend(weight.steps)
        self.budget.make(weight.chars)
        return True

    def _descend(self, steps: int, depth: int) -> None:
        self.budget.spend(steps)
        if depth > VALUE_DEPTH_MAX:
            raise TemplateTooLarge(f"the value is nested deeper than {VALUE_DEPTH_MAX} levels")

    def _plain_object(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        self._descend(len(value), depth)
        for key in value:
            if type(key) not in ATOMS:
                raise TemplateFailed(f"{_kind(key)} cannot be a key; use text")
        return {key: self.plain(item, depth + 1) for key, item in value.items()}

    def _plain_other(self, value: Any, depth: int) -> Any:
        if isinstance(value, Secret):
            return self.seen(value)
        if isinstance(value, Reference | TableRows):
            return value
        if isinstance(value, Undefined):
            return None
        if isinstance(value, Layered):
            return self.plain(value.whole, depth)
        if isinstance(value, str):
            return str(value)
        if _is_stream(value):
            return self.plain(self.listed(value), depth)
        if isinstance(value, datetime):
            return from_datetime(value)
        raise TemplateFailed(f"{_kind(value)} is not a value that a playbook can carry")

    def text(self, value: Any) -> str:
        """A value inside text: nothing is empty, containers are JSON."""
        value = self.passed(value)
        if type(value) is str:
            return value
        if value is None or isinstance(value, Undefined):
            return ""
        if isinstance(value, (bool, int, float, Secret)):
            return str(value)
        if isinstance(value, datetime):
            return from_datetime(value)
        if isinstance(value, Reference):
            raise NeedsPayload(Need(value.payload, value.path))
        return self.json(value)

    def json(self, value: Any, indent: int | None = None) -> str:
        """Plain JSON in the order of the keys: nothing is escaped for HTML, nothing is sorted."""
        separators = (",", ":") if indent is None else (",", ": ")
        text = json.dumps(
            self.plain(value),
            ensure_ascii=False,
            allow_nan=False,
            indent=indent,
            separators=separators,
            default=self._json_of_opaque,
        )
        self.budget.make(len(text))
        return text

    def _json_of_opaque(self, value: Any) -> Any:
        if isinstance(value, Reference):
            raise NeedsPayload(Need(value.payload, value.path))
        return self.operand(value) if isinstance(value, TableRows) else str(value)


class _Weight(NamedTuple):
    steps: int
    chars: int


def _plain_weight(value: Any) -> _Weight | None:
    """What a value costs that is plain in all its parts; None says that it takes a closer look."""
    steps = chars = 0
    level: list[Any] = [value]
    for _ in range(VALUE_DEPTH_MAX):
        inside: list[Any] = []
        for part in level:
            kind = type(part)
            if kind is str:
                chars += len(part)
            elif kind is list or (kind is dict and _has_text_keys(part)):
                steps += len(part)
                if steps > STEPS_MAX:
                    return None
                inside += part if kind is list else part.values()
            elif kind not in ATOMS:
                return None
        if not inside:
            return _Weight(steps, chars)
        level = inside
    return None


def _has_text_keys(value: dict[Any, Any]) -> bool:
    for key in value:  # noqa: SIM110 - `all` of a generator costs twice as much
        if type(key) is not str:
            return False
    return True


def _parts(value: Any) -> Iterator[None]:
    """One for each part of a value, and for each stretch of text."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield from repeat(None, 1 + len(item) // CHARS_PER_STEP)
        elif isinstance(item, Layered):
            waiting.append(item.whole)
        else:
            yield None
            if isinstance(item, _CONTAINERS):
                waiting.extend(item.values() if isinstance(item, Mapping) else item)


def _is_stream(value: Any) -> bool:
    """What `map` and its like give. Jinja's own `loop` is an iterator too, but not a value."""
    return isinstance(value, Iterator) and not isinstance(value, LoopContext)


def _kind(value: Any) -> str:
    names = {
        type(None): "nothing (null)",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), f"a {type(value).__name__}")
