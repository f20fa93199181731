"""What a template asks for: names, parts of names, filters and tests. Nothing is rendered here."""

from collections.abc import Iterator
from typing import NamedTuple

from jinja2 import nodes

from noetl.dsl.templates import NAME, is_plain_names, parsed_template

_CONSTANTS = frozenset({"true", "false", "none", "True", "False", "None"})
_DEFAULTS = ("default", "d")
_ASKS_WHETHER = ("defined", "undefined", "none")


class Asked(NamedTuple):
    """`{{ root.part }}`; `part` is None where the whole is asked for, or the part is computed."""

    root: str
    part: str | None
    line: int = 1


class Called(NamedTuple):
    """A filter or a test by name."""

    kind: str
    name: str
    line: int


class Questions(NamedTuple):
    names: list[Asked]
    calls: list[Called]


def asked_by(text: str) -> Questions:
    """Names that the template cannot do without: not those that it gives a default, or asks for
    whether they are there."""
    if is_plain_names(text):
        return Questions(list(_plain_names(text)), [])
    parsed = parsed_template(text)
    if not isinstance(parsed, nodes.Template):
        return Questions([], [])
    everything = list(_below(parsed))
    own = {node.name for node in everything if isinstance(node, nodes.Name) and node.ctx != "load"}
    own |= {asked for node in everything for asked in _asked_whether(node)}
    names = [each for each in _needed(parsed) if each.root not in own and _path(each) not in own]
    return Questions(names, list(_calls(everything)))


def _plain_names(text: str) -> Iterator[Asked]:
    for match in NAME.finditer(text):
        root, *parts = match[1].split(".")
        if root not in _CONSTANTS:
            yield Asked(root, parts[0] if parts else None, 1 + text.count("\n", 0, match.start()))


def _below(node: nodes.Node) -> Iterator[nodes.Node]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += each.iter_child_nodes()


def _asked_whether(node: nodes.Node) -> Iterator[str]:
    """`{{ x is defined }}` means that x may be missing, here and in the rest of the text."""
    if isinstance(node, nodes.Test) and node.name in _ASKS_WHETHER:
        asked = _reference(node.node)
        if asked is not None:
            yield _path(asked)


def _needed(tree: nodes.Node) -> Iterator[Asked]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found = _reference(node)
        if found is not None:
            yield found
        if not isinstance(node, nodes.Name):
            waiting += _needed_below(node)


def _needed_below(node: nodes.Node) -> list[nodes.Node]:
    """The parts of an expression that are not covered by what they would be otherwise."""
    children = list(node.iter_child_nodes())
    if isinstance(node, nodes.Filter) and node.name in _DEFAULTS:
        return [child for child in children if child is not node.node]
    if isinstance(node, nodes.Or):
        return [node.right]
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        rest = [child for child in children if child is not node.node]
        return [node.node.node, *rest]  # `ctx.get('x')` asks for ctx
    if _reference(node) is not None:
        return []
    return children


def _reference(node: nodes.Node) -> Asked | None:
    """A name, or the first part of one."""
    if isinstance(node, nodes.Name) and node.ctx == "load":
        return Asked(node.name, None, node.lineno)
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return Asked(node.node.name, node.attr, node.lineno)
    if isinstance(node, nodes.Getitem) and isinstance(node.node, nodes.Name):
        key = node.arg.value if isinstance(node.arg, nodes.Const) else None
        return Asked(node.node.name, key, node.lineno) if isinstance(key, str) else None
    return None


def _calls(everything: list[nodes.Node]) -> Iterator[Called]:
    for node in everything:
        if isinstance(node, nodes.Filter):
            yield Called("filter", node.name, node.lineno)
        elif isinstance(node, nodes.Test):
            yield Called("test", node.name, node.lineno)


def _path(asked: Asked) -> str:
    return asked.root if asked.part is None else f"{asked.root}.{asked.part}"
