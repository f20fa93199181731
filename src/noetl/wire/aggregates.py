"""Which thing an event is about, and the name of its schema."""

from noetl.domain.events import BUSINESS_OBJECT, CATALOGUE, BusinessObjectChanged
from noetl.domain.events.envelope import Draft
from noetl.kernel.errors import FieldInvalid
from noetl.kernel.ids import ExecutionId, object_key

SCHEMA_NAMES = {event_type: f"noetl.{event_type}" for event_type in CATALOGUE}

_ID_FIELDS = {"command": "command_id", "frame": "frame_id", "stage": "stage_id"}
"""Families whose events name their subject in the envelope, where stores can index it."""

_FAMILIES = {cls: cls.TYPE.partition(".")[0] for cls in CATALOGUE.values()}


def aggregate_of(draft: Draft, execution: ExecutionId) -> tuple[str, str]:
    """(aggregate_type, aggregate_id). Refuses an event that does not name its subject."""
    event = draft.event
    if type(event) is BusinessObjectChanged:
        return BUSINESS_OBJECT, object_key(str(event.object), event.id)
    if draft.event_type is not None and draft.event_type != event.TYPE:
        raise FieldInvalid(event.TYPE, "only events about business objects may have another name")
    family = _FAMILIES[type(event)]
    if family == "loop":
        return "loop", str(getattr(event, "loop_id", ""))
    field = _ID_FIELDS.get(family)
    if field is None:
        return "execution", execution
    subject = getattr(draft, field)
    if not subject:
        raise FieldInvalid(event.TYPE, f"needs {field}")
    if family == "frame" and not draft.stage_id:
        raise FieldInvalid(event.TYPE, "needs stage_id: a frame belongs to a stage")
    return family, str(subject)
