"""What a value may be: a test for the checker, words for people, JSON Schema for editors."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.dsl.nodes import Items, Mapping, Node, Scalar

TEMPLATE_SCHEMA: dict[str, Any] = {"type": "string", "pattern": r"\{[{%]"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OLD_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false"}
_DIGITS_MAX = 18
_LIKENESS = 0.8  # the words that are allowed are listed anyway; a wrong hint would only mislead
_EXAMPLES = {
    "task": "{kind: noop}",
    "next": "{arcs: [{step: end}]}",
    "else_action": "{then: {do: continue}}",
    "action": "{do: continue}",
    "loop": '{in: "{{ workload.rows }}"}',
}


class Shape(msgspec.Struct, frozen=True):
    words: str
    schema: dict[str, Any]
    accepts: Callable[[Node], bool]
    example: str = ""

    def fix(self, node: Node) -> str:
        """What to write instead."""
        if isinstance(node, Scalar) and isinstance(node.value, str):
            boolean = _OLD_BOOLEANS.get(node.value.lower())
            if boolean is not None and "boolean" in self.words:
                return f"in YAML 1.2 `{node.value}` is text; write {boolean}"
            close = nearest(node.value, self.schema.get("enum", ()), _LIKENESS)
            if close is not None:
                return f"did you mean {close!r}?"
        if self.schema.get("type") == "string" and _needs_quotes(node):
            return "put it in quotes"
        if "enum" in self.schema:
            return "use one of these words"
        return f"write it like {self.example}" if self.example else f"write {self.words}"


def is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def duration_seconds(text: str) -> float | None:
    """`30s`, `1.5m`, `500ms`; None when it is none of these."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or len(found[1]) > _DIGITS_MAX:
        return None
    return float(found[1]) * _UNIT_SECONDS[found[2] or "s"]


def number_of(text: str) -> float | None:
    """A number that was written in quotes."""
    stripped = text.strip()
    if len(stripped) > _DIGITS_MAX or _NUMBER.fullmatch(stripped) is None:
        return None
    return float(stripped)


def _scalar(node: Node) -> object:
    return node.value if isinstance(node, Scalar) else ...


def _needs_quotes(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, (bool, int, float))


def _is_text(node: Node) -> bool:
    return isinstance(_scalar(node), str)


def _is_template(node: Node) -> bool:
    value = _scalar(node)
    return isinstance(value, str) and is_template(value)


def _is_name(node: Node) -> bool:
    value = _scalar(node)
    return isinstance(value, str) and bool(value.strip()) and not is_template(value)


def _is_flag(node: Node) -> bool:
    return isinstance(_scalar(node), bool)


def _number(node: Node) -> float | None:
    value = _scalar(node)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    return number_of(value) if isinstance(value, str) else None


def _seconds(node: Node) -> float | None:
    value = _scalar(node)
    return duration_seconds(value) if isinstance(value, str) else _number(node)


def whole(minimum: int) -> Shape:
    """A whole number, possibly given by a template."""

    def accepts(node: Node) -> bool:
        number = _number(node)
        fits = number is not None and number >= minimum and number == int(number)
        return fits or _is_template(node)

    schema = {"anyOf": [{"type": "integer", "minimum": minimum}, TEMPLATE_SCHEMA, _DIGITS]}
    words = f"a whole number of at least {minimum}, or a template"
    return Shape(words, schema, accepts, '5, or "{{ workload.count }}"')


def choice(*words: str) -> Shape:
    listed = choices(words)
    return Shape(listed, {"enum": list(words)}, lambda node: _scalar(node) in words)


def either(*shapes: Shape) -> Shape:
    return Shape(
        choices([shape.words for shape in shapes]),
        {"anyOf": [shape.schema for shape in shapes]},
        lambda node: any(shape.accepts(node) for shape in shapes),
        " or ".join(shape.example for shape in shapes if shape.example),
    )


def record(name: str) -> Shape:
    """A mapping that is described, and checked, by the record of that name."""
    schema = {"$ref": f"#/$defs/{name}"}
    example = _EXAMPLES.get(name, "")
    return Shape("a mapping", schema, lambda node: isinstance(node, Mapping), example)


def records(name: str) -> Shape:
    """A list of such mappings."""
    schema = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
    return Shape("a list", schema, lambda node: isinstance(node, Items))


def names_or_records(name: str) -> Shape:
    """A list in which a plain name stands for the simplest such mapping."""
    items = {"anyOf": [{"type": "string"}, {"$ref": f"#/$defs/{name}"}]}
    schema = {"type": "array", "items": items}
    return Shape("a list", schema, lambda node: isinstance(node, Items))


def _is_names(node: Node) -> bool:
    return isinstance(node, Items) and all(_is_name(each) for each in node.nodes)


_DIGITS: dict[str, Any] = {"type": "string", "pattern": r"^\s*[-+]?\d+(\.\d+)?\s*$"}

ANYTHING = Shape("anything", {}, lambda _node: True)
TEXT = Shape("text", {"type": "string"}, _is_text)
NAME = Shape("a plain name", {"type": "string", "minLength": 1}, _is_name)
NAMES = Shape(
    "a list of names", {"type": "array", "items": {"type": "string"}}, _is_names, "[one, two]"
)
BOOLEAN = Shape("a boolean, true or false", {"type": "boolean"}, _is_flag)
FLAG = Shape(
    "a boolean, true or false, or a template",
    {"anyOf": [{"type": "boolean"}, TEMPLATE_SCHEMA]},
    lambda node: _is_flag(node) or _is_template(node),
)
CONDITION = Shape(
    "a template or a boolean",
    {"type": ["string", "boolean"]},
    lambda node: _is_text(node) or _is_flag(node),
    "\"{{ output.status == 'error' }}\"",
)
NUMBER = Shape(
    "a number of at least 0, or a template",
    {"anyOf": [{"type": "number", "minimum": 0}, TEMPLATE_SCHEMA, _DIGITS]},
    lambda node: (_number(node) or 0) >= 0 and (_number(node) is not None or _is_template(node)),
)
MILLISECONDS = Shape(
    "a number of milliseconds",
    {"type": "number", "exclusiveMinimum": 0},
    lambda node: (_number(node) or 0) > 0,
)
SECONDS = Shape(
    "seconds, a duration such as 30s, or a template",
    {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(ms|s|m|h|d)?\s*$"},
            TEMPLATE_SCHEMA,
        ]
    },
    lambda node: (_seconds(node) or 0) >= 0 and (_seconds(node) is not None or _is_template(node)),
    "30, 30s or 5m",
)
MAP = Shape(
    "a mapping", {"type": "object"}, lambda node: isinstance(node, Mapping), "{name: value}"
)
LIST = Shape("a list", {"type": "array"}, lambda node: isinstance(node, Items))
TEXT_OR_NUMBER = Shape(
    "text or a number",
    {"type": ["string", "number"]},
    lambda node: _is_text(node) or _number(node) is not None,
)
COUNT = whole(1)


def wrong(shape: Shape, node: Node, said: str) -> str:
    """`delay must be a number, not 'soon'`"""
    if isinstance(node, Scalar) and node.value is not None:
        return f"{said} must be {shape.words}, not {shown(repr(node.value))}"
    kind = "a list" if isinstance(node, Items) else "a mapping"
    return f"{said} must be {shape.words}, not {'empty' if isinstance(node, Scalar) else kind}"
