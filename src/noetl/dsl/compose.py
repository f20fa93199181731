"""YAML events to nodes, within limits that are checked before anything grows."""

from collections.abc import Sequence
from itertools import chain
from typing import NoReturn

import yaml

from noetl.domain.playbook.wording import shown
from noetl.dsl.nodes import Entry, Items, Mapping, Node, Scalar
from noetl.dsl.problems import Problem, Problems
from noetl.dsl.scalars import TAGS, ScalarRefused, resolve, resolve_tagged

DEPTH_MAX = 50
NODES_MAX = 300_000
"""Counted with every alias written out, so a few lines cannot stand for a billion."""

BARE_TEMPLATE = "without quotes, YAML takes a template for a mapping"
QUOTE_TEMPLATE = 'put the whole value in quotes: "{{ … }}"'
_MERGE = "<<"


class Refused(Exception):
    """Reading on makes no sense; the reason is among the problems."""


class _Open:
    """A list or mapping whose end has not come yet."""

    __slots__ = ("anchor", "is_key", "key", "node", "skips")

    def __init__(self, node: Items | Mapping, anchor: str | None, is_key: bool) -> None:
        self.node = node
        self.anchor = anchor
        self.is_key = is_key
        self.key: Scalar | None = None  # of a mapping, when its value comes next
        self.skips = False  # the next value belongs to a key that was refused


class Composer:
    def __init__(self, lines: Sequence[str], problems: Problems) -> None:
        self._lines = lines
        self._problems = problems
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None: its end has not come yet
        self._root: Node | None = None
        self._documents = 0
        self._size = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):  # most are
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._document(event)

    def finish(self) -> Node | None:
        if self._documents == 0:
            self._problems.record(Problem(1, 1, "", "the file is empty", "write a playbook in it"))
        return self._root

    def _document(self, event: yaml.Event) -> None:
        self._documents += 1
        if self._documents > 1:
            self._refuse(
                event,
                "a second document starts here; a file holds one playbook",
                "remove the line `---`, or move the rest to a file of its own",
            )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._grow(event, 1)
        is_plain = not event.style
        node = Scalar(*_position(event), self._path(event), None, event.value, is_plain)
        try:
            if event.tag is None:
                node.value = resolve(event.value) if is_plain else event.value
            else:
                node.value = resolve_tagged(event.value, event.tag)
        except ScalarRefused as refused:
            node.value = event.value
            self._problems.error(node, str(refused), "write plain text, a number or a boolean")
        self._anchor(event.anchor, node)
        self._place(node)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        self._grow(event, 1)
        if len(self._open) >= DEPTH_MAX:
            self._refuse(event, f"more than {DEPTH_MAX} levels inside each other", "flatten it")
        where = (*_position(event), self._path(event))
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        node: Items | Mapping = Mapping(*where, {}) if is_mapping else Items(*where, [])
        tag = event.tag or "!"
        if tag != "!" and TAGS.get(tag) not in ("map", "seq"):
            message = f"the tag {shown(tag)!r} is not known here; only plain data is allowed"
            self._problems.error(node, message, "remove the tag")
        self._anchor(event.anchor, None)
        is_key = self._awaits_key()
        if is_key:
            self._refuse_key(node)
        self._open.append(_Open(node, event.anchor, is_key))

    def _end(self) -> None:
        closed = self._open.pop()
        node = closed.node
        if isinstance(node, Mapping):
            self._merge(node)
        children = _children(node)
        node.size = 1 + sum(child.size for child in children)
        node.height = 1 + max((child.height for child in children), default=0)
        self._anchor(closed.anchor, node)
        if closed.is_key:
            self._open[-1].skips = True
        else:
            self._place(node)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        target = self._anchors.get(name)
        if name not in self._anchors:
            message = f"the alias *{shown(name)} has no anchor &{shown(name)} before it"
            self._refuse(event, message, "define the anchor first, or quote the text if it is none")
        if target is None:
            message = f"the alias *{shown(name)} stands inside its own anchor"
            self._refuse(event, message, "write the value out instead")
        self._grow(event, target.size)
        if len(self._open) + target.height > DEPTH_MAX:
            self._refuse(event, f"more than {DEPTH_MAX} levels inside each other", "flatten it")
        if self._awaits_key() and not isinstance(target, Scalar):
            self._refuse_key(target)
            self._open[-1].skips = True
        else:
            self._place(target)

    def _place(self, node: Node) -> None:
        """Give a finished node to whatever it stands in."""
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        if isinstance(parent.node, Items):
            parent.node.nodes.append(node)
        elif parent.skips:
            parent.skips = False
        elif parent.key is not None:
            key, parent.key = parent.key, None
            self._add(parent.node, key, node)
        elif isinstance(node, Scalar):
            parent.key = node

    def _add(self, mapping: Mapping, key: Scalar, value: Node) -> None:
        if not key.text:
            self._problems.error(key, "the key is empty", "write a name before the colon")
            return
        earlier = mapping.entries.get(key.text)
        if earlier is None:
            mapping.entries[key.text] = Entry(key, value)
            return
        message = f"the key {shown(key.text)!r} is already used in line {earlier.key.line}"
        self._problems.error(key, message, "keep one of the two")

    def _merge(self, mapping: Mapping) -> None:
        """`<<: *defaults`: keys of another mapping, where this one does not have them."""
        entry = mapping.entries.get(_MERGE)
        if entry is None or not entry.key.is_plain:
            return
        value = entry.value
        sources = value.nodes if isinstance(value, Items) else [value]
        if not all(isinstance(source, Mapping) for source in sources):
            message = "`<<` takes keys from another mapping, and this is none"
            self._problems.error(value, message, "give it an alias of a mapping: `<<: *defaults`")
        del mapping.entries[_MERGE]
        inherited = chain.from_iterable(
            source.entries.items() for source in sources if isinstance(source, Mapping)
        )
        for key, each in inherited:
            mapping.entries.setdefault(key, each)

    def _awaits_key(self) -> bool:
        if not self._open:
            return False
        parent = self._open[-1]
        return isinstance(parent.node, Mapping) and parent.key is None and not parent.skips

    def _refuse_key(self, key: Node) -> None:
        outer = self._open[-1].node
        if self._lines[outer.line - 1][outer.column - 1 :].startswith("{{"):
            self._problems.error(outer, BARE_TEMPLATE, QUOTE_TEMPLATE)
        else:
            self._problems.error(key, "a key must be text", "write the key as a single word")

    def _path(self, event: yaml.Event) -> str:
        """Keys have the path of the value they name, so a problem with either leads there."""
        if not self._open:
            return ""
        parent = self._open[-1]
        outer = parent.node.path
        if isinstance(parent.node, Items):
            return f"{outer}[{len(parent.node.nodes)}]"
        name = parent.key.text if parent.key is not None else getattr(event, "value", "?")
        return f"{outer}.{name}" if outer else str(name)

    def _anchor(self, name: str | None, node: Node | None) -> None:
        if name is not None:
            self._anchors[name] = node

    def _grow(self, event: yaml.Event, nodes: int) -> None:
        self._size += nodes
        if self._size > NODES_MAX:
            message = f"more than {NODES_MAX} values, with aliases written out"
            self._refuse(event, message, "keep data in files or tables and let a step read them")

    def _refuse(self, event: yaml.Event, message: str, fix: str) -> NoReturn:
        line, column = _position(event)
        self._problems.record(Problem(line, column, "", message, fix))
        raise Refused


def _children(node: Items | Mapping) -> list[Node]:
    if isinstance(node, Items):
        return node.nodes
    return [entry.value for entry in node.entries.values()]


def _position(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
