"""Lifting old events and then folding them is folding what they would be today."""

from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.domain.events import (
    BusinessObjectChanged,
    CommandIssued,
    Event,
    FrameCommitted,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.execution.fold import fold
from noetl.domain.log import StoredEvent
from noetl.domain.surfaces import checksum_bundle
from noetl.kernel import canonical_json
from noetl.testing.given import recorded, stored
from noetl.testing.histories import source_of
from noetl.testing.strategies import EXECUTION, histories
from noetl.wire.codec import open_stored
from noetl.wire.upcasting import Body, Upcaster, UpcasterRegistry

CHANGED: tuple[type[Event], ...] = (
    StepEntered, StepExited, CommandIssued, FrameCommitted, BusinessObjectChanged,
)  # fmt: skip
LAST_VERSION = 3


def newer(body: Body, version: int) -> Body:
    """The change that every version made: one field more around everything."""
    return body[f"wrapped_{version}"] if version < LAST_VERSION else body


def older(body: Body, version: int) -> Body:
    for step in range(LAST_VERSION - 1, version - 1, -1):
        body = {f"wrapped_{step}": body}
    return body


REGISTRY = UpcasterRegistry(
    Upcaster(f"noetl.{cls.TYPE}", version, version + 1, partial(newer, version=version))
    for cls in CHANGED
    for version in range(1, LAST_VERSION)
)


def as_written_at(row: StoredEvent, version: int) -> StoredEvent:
    plain = msgspec.json.decode(row.canonical)
    plain |= {"schema_version": version, "body": older(plain["body"], version)}
    canonical = canonical_json.encode(plain)
    checksum = canonical_json.sha256_hex(canonical)
    return msgspec.structs.replace(row, canonical=canonical, checksum=checksum)


@given(histories(classes=CHANGED, events_min=3), st.data())
def test_upcast_then_fold_is_fold_of_upcast(drafts: list[Draft], data: st.DataObject) -> None:
    versions = st.integers(1, LAST_VERSION)
    with pytest.MonkeyPatch.context() as patch:
        for cls in CHANGED:
            patch.setattr(cls, "VERSION", LAST_VERSION)
        rows = [
            as_written_at(row, data.draw(versions)) for row in stored(drafts, source_of(EXECUTION))
        ]

        lifted = [open_stored(row, REGISTRY) for row in rows]
        today = recorded(drafts, EXECUTION)

    assert [each.event for each in lifted] == [each.event for each in today]
    assert fold(lifted) == fold(today)
    assert checksum_bundle(fold(lifted)) == checksum_bundle(fold(today))
