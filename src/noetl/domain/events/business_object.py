"""Facts about the things a playbook works on: orders, patients, files.

Any event type of the user's own choosing is a `BusinessObjectChanged` when its envelope says
`aggregate_type: business_object`; `object.changed` is the name used when none is given.
"""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Int64, ResultReference


class BusinessObjectChanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "object.changed"
    VERSION: ClassVar[int] = 1

    object: str  # its type, e.g. "order"
    id: str
    status: str | None = None  # None leaves the status as it was
    attributes: dict[str, Any] = {}  # merged over the known ones; null removes one
    deleted: bool = False


class BusinessObjectsRecorded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frame's output has a column of object changes; one event stands for all its rows."""

    TYPE: ClassVar[str] = "objects.recorded"
    VERSION: ClassVar[int] = 1

    objects_ref: ResultReference
    count: Int64
