"""Plain data that remembers where in the text it stands."""

from typing import Any, ClassVar

import msgspec

Plain = str | int | float | bool | None


class Scalar(msgspec.Struct, gc=False):
    """`text` is what was written; `value` what it means under the rules of YAML 1.2."""

    line: int
    column: int
    path: str
    value: Plain
    text: str
    is_plain: bool = True  # written without quotes

    size: ClassVar[int] = 1
    height: ClassVar[int] = 0


class Items(msgspec.Struct):
    line: int
    column: int
    path: str
    nodes: list["Node"]
    size: int = 1  # with everything inside, what stands behind aliases included
    height: int = 1  # levels inside


class Entry(msgspec.Struct):
    key: Scalar
    value: "Node"


class Mapping(msgspec.Struct):
    line: int
    column: int
    path: str
    entries: dict[str, Entry]
    size: int = 1
    height: int = 1

    def get(self, key: str) -> "Node | None":
        entry = self.entries.get(key)
        return None if entry is None else entry.value


Node = Scalar | Items | Mapping


def to_plain(node: Node) -> Any:
    """The data without its positions. Depth is bounded where the text is read."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [to_plain(each) for each in node.nodes]
    return {key: to_plain(entry.value) for key, entry in node.entries.items()}


def is_null(node: Node | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.value is None)


def described(node: Node) -> str:
    """What a value is, as a person would say it."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    match node.value:
        case None:
            return "empty"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case _:
            return "text"
