"""Templates that only look values up: answered from the bindings, without Jinja's machinery."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from jinja2 import Undefined, nodes

from noetl.templates.lookup import MISSING, Lookup, look_up
from noetl.templates.rendering import Rendering
from noetl.templates.sandbox import Sandbox

_OF_JINJA: Final = "self"
"""To Jinja this name is the template; what it is to an author, the grammar says."""

_REFUSED: Final = "__"
"""How names begin that are no data: Jinja's way says so, wherever they stand."""


class Look(NamedTuple):
    """`a.b[0]`: a name, and what is looked up below it."""

    name: str
    keys: tuple[str | int, ...]

    def value(self, rendering: Rendering, sandbox: Sandbox) -> Any:
        """Nothing is None, however deep the look goes below it."""
        found = rendering.bindings.find(self.name)
        for key in self.keys:
            is_map = type(found) is dict  # as most values are
            found = found.get(key, MISSING) if is_map else _below(found, key, rendering, sandbox)
            if found is MISSING:
                return None
        return None if found is MISSING else rendering.seen(found)


def _below(value: Any, key: str | int, rendering: Rendering, sandbox: Sandbox) -> Any:
    if isinstance(value, Lookup):
        return look_up(value, key)
    found = MISSING if value is MISSING else sandbox.getitem(rendering.seen(value), key)
    return MISSING if isinstance(found, Undefined) else found


Piece = str | Look


def pieces_of(tree: nodes.Template) -> tuple[Piece, ...] | None:
    """Text and looks in their order; None for a template that does more."""
    pieces: list[Piece] = []
    for node in _outputs(tree):
        piece = node.data if isinstance(node, nodes.TemplateData) else look_of(node)
        if piece is None:
            return None
        pieces.append(piece)
    return tuple(pieces)


def look_of(node: nodes.Node | None) -> Look | None:
    """An expression as a look, if it is one."""
    keys: list[str | int] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        key = node.attr if isinstance(node, nodes.Getattr) else _constant(node.arg)
        if key is None or str(key).startswith(_REFUSED):
            return None
        keys.append(key)
        node = node.node
    if not isinstance(node, nodes.Name) or node.name == _OF_JINJA:
        return None
    return Look(node.name, tuple(reversed(keys)))


def _outputs(tree: nodes.Template) -> Iterator[nodes.Node]:
    for node in tree.body:
        yield from node.nodes if isinstance(node, nodes.Output) else (node,)


def _constant(node: nodes.Node) -> str | int | None:
    value = node.value if isinstance(node, nodes.Const) else None
    return value if type(value) in (str, int) else None
