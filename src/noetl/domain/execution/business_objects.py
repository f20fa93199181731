"""How facts about business objects change the state."""

from noetl.domain.events import BusinessObjectChanged, BusinessObjectsRecorded
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.rows import BusinessObjectRow, ObjectsRecordedRow
from noetl.kernel.ids import object_key


def changed(fold: Accumulator, event: BusinessObjectChanged, envelope: Envelope) -> None:
    """Attributes are merged, null removes one; a deleted object that comes back starts anew."""
    key = object_key(event.object, event.id)
    row = fold.state.business_objects.get(key)
    if row is None:
        row = fold.state.business_objects[key] = BusinessObjectRow(
            object=event.object,
            id=event.id,
            first_event_id=envelope.event_id,
            last_event_id=envelope.event_id,
        )
    row.version += 1
    row.last_event_id = envelope.event_id
    row.status = row.status if event.status is None else event.status
    merged = {**row.attributes, **event.attributes}
    row.attributes = {name: value for name, value in merged.items() if value is not None}
    if envelope.payload_ref is not None:
        row.payload_refs += 1
        row.last_payload = fold.note_reference(envelope.payload_ref)
    if event.deleted:
        row.deleted = True
        row.terminal_version = envelope.stream_version
        del fold.state.business_objects[key]
        fold.retire("business_objects", row)


def recorded(fold: Accumulator, event: BusinessObjectsRecorded, envelope: Envelope) -> None:
    """The objects themselves are rows of a dataset; the log proves which dataset."""
    summary = fold.note_reference(event.objects_ref)
    if summary is not None:
        row = ObjectsRecordedRow(
            objects_ref=summary,
            count=event.count,
            event_id=envelope.event_id,
            terminal_version=envelope.stream_version,
        )
        fold.retire("business_objects", row)


FOLDS: dict[type, FoldFunction] = {
    BusinessObjectChanged: changed,
    BusinessObjectsRecorded: recorded,
}
