"""`emit`: changes of business objects that a task or a step made known."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.playbook.values import Emit
from noetl.kernel.canonical_json import check_plain
from noetl.pipeline.evaluation import Evaluation, Source
from noetl.pipeline.failures import failed


async def changes(
    emits: tuple[Emit, ...], evaluation: Evaluation, names: Source
) -> list[BusinessObjectChanged]:
    """Raises TemplateError, or ToolFailed for a change that names nothing."""
    return [await _change(emit, evaluation, names) for emit in emits]


async def _change(emit: Emit, evaluation: Evaluation, names: Source) -> BusinessObjectChanged:
    written = {
        "object": emit.object,
        "id": emit.id,
        "status": emit.status,
        "attributes": emit.attributes,
    }
    told = await evaluation.value(written, names)
    identifier, status, attributes = told["id"], told["status"], told["attributes"]
    if identifier in (None, "") or isinstance(identifier, bool | dict | list):
        raise failed("schema", f"emit of {emit.object!r} gave no id; check its template")
    if not isinstance(attributes, dict | None):
        message = f"emit of {emit.object!r} gave attributes that are not a map"
        raise failed("schema", f"{message}; write name: value")
    check_plain(attributes, "attributes")
    return BusinessObjectChanged(
        object=str(told["object"]),
        id=str(identifier),
        status=None if status in (None, "") else str(status),
        attributes=attributes or {},
    )


def scrubbed(
    told: Iterable[BusinessObjectChanged], scrub: Callable[[Any], Any]
) -> tuple[BusinessObjectChanged, ...]:
    """Without the secrets that a row has used."""
    return tuple(
        msgspec.structs.replace(
            change,
            id=scrub(change.id),
            status=scrub(change.status),
            attributes=scrub(change.attributes),
        )
        for change in told
    )
