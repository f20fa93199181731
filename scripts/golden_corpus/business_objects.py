"""The golden history of business objects: changed, deleted, and made again."""

from collections.abc import Iterator

from noetl.domain.events import BusinessObjectChanged
from noetl.domain.events.envelope import Draft
from noetl.domain.payload import StoredPayload, reference_to
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.histories import History, begin, finish

SCAN = reference_to(DEFAULT_SCOPE, StoredPayload("5f" * 32, 81_024), "image/png")


def business_objects(history: History) -> Iterator[Draft]:
    """Order 7 is deleted and comes back; a customer stays open; other names stay apart."""
    yield from begin(history)
    yield from changed_order(history, "new", {"total": 12.5, "currency": "EUR", "note": "für 東京"})
    yield from changed_order(history, "paid", {"note": None, "total": 12.0}, "order.paid")
    customer = BusinessObjectChanged(object="customer", id="7", attributes={"vip": True})
    yield history.draft(customer, event_type="customer.met", payload_ref=SCAN)
    deleted = BusinessObjectChanged(object="order", id="7", deleted=True)
    yield history.draft(deleted, event_type="order.deleted")
    yield from changed_order(history, "new", {"total": 1e-7}, "order.made_again")
    for name, key in (("order/eu", "7"), ("order", "eu/7")):
        yield history.draft(BusinessObjectChanged(object=name, id=key, status="new"))
    scanned = BusinessObjectChanged(object="customer", id="7", status=None)
    yield history.draft(scanned, payload_ref=SCAN)
    yield from finish(history, StepName("fetch"))


def changed_order(
    history: History, status: str, attributes: dict[str, object], event_type: str | None = None
) -> Iterator[Draft]:
    event = BusinessObjectChanged(object="order", id="7", status=status, attributes=attributes)
    yield history.draft(event, event_type=event_type)
