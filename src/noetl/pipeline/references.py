"""References inside values: finding them, opening them, and showing what they stand for."""

from collections.abc import Mapping
from typing import Any

from noetl.kernel.errors import PayloadMissing
from noetl.templates.layered import Layered, PipelineResult, StoredResult, plain_result
from noetl.templates.lookup import MISSING, look_up
from noetl.templates.recorded import Fetched
from noetl.templates.reference import Reference
from noetl.templates.secret import MASK, Secret
from noetl.templates.table_rows import TableRows

PREVIEW_ROWS = 8


def references_in(value: Any) -> list[Reference]:
    """Level by level: it looks through every value that is rendered beside a stored result."""
    found: list[Reference] = []
    level: list[Any] = [value]
    while level:
        inside: list[Any] = []
        for part in level:
            kind = type(part)
            if kind is dict:
                inside += part.values()
            elif kind is list:
                inside += part
            elif kind is Reference:
                found.append(part)
        level = inside
    return found


def opened(value: Any, fetched: Fetched) -> Any:
    """The value with the references that were fetched replaced by what they stand for."""
    if isinstance(value, Reference):
        return _behind(value, fetched[value.payload]) if value.payload in fetched else value
    if type(value) is dict:
        return {key: opened(item, fetched) for key, item in value.items()}
    if type(value) is list:
        return [opened(item, fetched) for item in value]
    return value


def shown(value: Any) -> Any:
    """Plain data for a program to look at: a reference is its name and the part at hand."""
    if isinstance(value, Layered):
        return shown(value.whole)
    if isinstance(value, Reference):
        block = value.block if isinstance(value.block, dict) else {"_preview": value.block}
        return {**block, "_ref": value.payload}
    if isinstance(value, TableRows):
        uri = None if value.reference is None else value.reference.uri
        return {"_preview": value[:PREVIEW_ROWS], "_ref": uri}
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, StoredResult | PipelineResult):
        return shown(plain_result(value))
    return value


def _behind(reference: Reference, content: Any) -> Any:
    for key in reference.path:
        content = look_up(content, key)
    if content is MISSING:
        raise PayloadMissing(reference.payload)
    return content
