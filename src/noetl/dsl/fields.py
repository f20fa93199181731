"""One mapping read against its record: what is unknown, missing or misshapen is reported."""

from typing import Any

from noetl.domain.playbook.values import Count, Seconds
from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.dsl.language.records import Record
from noetl.dsl.language.shapes import duration_seconds, is_template, number_of, wrong
from noetl.dsl.nodes import Entry, Items, Mapping, Node, Scalar, described, is_null, to_plain
from noetl.dsl.problems import Problems


class Fields:
    """Keys under their main spelling, each value of the right shape. Null counts as absent."""

    def __init__(self, node: Mapping) -> None:
        self.node = node
        self.values: dict[str, Node] = {}
        self.extra: dict[str, Node] = {}
        self.present: set[str] = set()  # null or misshapen ones too

    def get(self, name: str) -> Node | None:
        return self.values.get(name)

    def plain(self, name: str) -> Any:
        node = self.values.get(name)
        return None if node is None else to_plain(node)

    def text(self, name: str) -> str | None:
        """Text, or a number as it was written."""
        node = self.values.get(name)
        return node.text if isinstance(node, Scalar) else None

    def mapping(self, name: str) -> dict[str, Any]:
        node = self.values.get(name)
        return to_plain(node) if isinstance(node, Mapping) else {}

    def flag(self, name: str, otherwise: bool = False) -> bool:
        node = self.values.get(name)
        value = node.value if isinstance(node, Scalar) else otherwise
        return value if isinstance(value, bool) else otherwise

    def items(self, name: str) -> list[Node]:
        node = self.values.get(name)
        return node.nodes if isinstance(node, Items) else []

    def count(self, name: str) -> Count | None:
        number = self.seconds(name)
        return int(number) if isinstance(number, float) else number

    def seconds(self, name: str) -> Seconds | None:
        node = self.values.get(name)
        if not isinstance(node, Scalar):
            return None
        if isinstance(node.value, str):
            if is_template(node.value):
                return node.value
            written = number_of(node.value)
            return written if written is not None else duration_seconds(node.value)
        return None if node.value is None else float(node.value)


def read(node: Node, record: Record, problems: Problems) -> Fields | None:
    """None when there is no mapping to read; that is reported."""
    if not isinstance(node, Mapping):
        fix = f"write {choices([f'`{name}:`' for name in list(record.keys)[:_SHOWN_MAX]])} …"
        problems.error(node, f"{record.words} must be a mapping, not {described(node)}", fix)
        return None
    fields = Fields(node)
    spellings = record.spellings
    for written, entry in node.entries.items():
        name = spellings.get(written)
        if name is None:
            _unknown(entry, record, fields, problems)
        else:
            _known(entry, name, record, fields, problems)
    _missing(fields, record, problems)
    return fields


_SHOWN_MAX = 3


def _known(entry: Entry, name: str, record: Record, fields: Fields, problems: Problems) -> None:
    shape = record.keys[name].shape
    if name in fields.present:
        written = entry.key.text
        message = f"{shown(written)!r} and another key of {record.words} are spellings of {name!r}"
        problems.error(entry.key, message, "keep one of them")
        return
    fields.present.add(name)
    if is_null(entry.value):
        return
    if shape.accepts(entry.value):
        fields.values[name] = entry.value
        _warn_of_hint(entry.value, name, record, problems)
    else:
        message = wrong(shape, entry.value, f"{entry.key.text!r}")
        problems.error(entry.value, message, shape.fix(entry.value))


def _warn_of_hint(node: Node, name: str, record: Record, problems: Problems) -> None:
    key = record.keys[name]
    if not key.hint or (isinstance(node, Scalar) and node.text.lower() == key.usual):
        return
    message = f"{name!r} of {record.words} is a hint for other engines and has no effect"
    problems.warning(node, f"{message}: {key.hint}", "remove it")


def _unknown(entry: Entry, record: Record, fields: Fields, problems: Problems) -> None:
    written = entry.key.text
    if written in record.ignored:
        message = f"{written!r} has no effect in {record.words}"
        problems.warning(entry.key, message, "remove it")
        return
    if written in record.retired:
        message = f"{written!r} is not a key of {record.words}"
        problems.error(entry.key, message, record.retired[written])
        return
    fields.extra[written] = entry.value
    if record.unknown == "kept":
        return
    close = nearest(written, record.spellings)
    message = f"{shown(written)!r} is not a key of {record.words}"
    if close is not None:
        problems.error(entry.key, message, f"did you mean {close!r}?")
    elif record.unknown == "suspected":
        problems.warning(entry.key, f"{message}; it is passed on as it is", _known_keys(record))
    else:
        problems.error(entry.key, message, _known_keys(record))


def _known_keys(record: Record) -> str:
    return f"known keys: {choices(record.keys)}"


def _missing(fields: Fields, record: Record, problems: Problems) -> None:
    for name in record.required:
        words = record.keys[name].shape.words
        entry = fields.node.entries.get(name)
        if entry is not None and is_null(entry.value):
            problems.error(entry.key, f"{name!r} is empty", f"write {words}")
        elif name not in fields.present:
            message = f"{record.words} needs {name!r}"
            problems.error(fields.node, message, f"add `{name}:` with {words}")
    for group in record.needs:
        if not any(name in fields.values or _given(fields, name) for name in group):
            message = f"{record.words} needs {choices([repr(name) for name in group])}"
            problems.error(fields.node, message, f"add `{group[0]}:`")


def _given(fields: Fields, name: str) -> bool:
    """Kept as it is, or present but misshapen, which was reported already."""
    entry = fields.node.entries.get(name)
    known = name in fields.present or name in fields.extra
    return known and (entry is None or not is_null(entry.value))
