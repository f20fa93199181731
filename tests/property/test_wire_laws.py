"""Whatever the wire takes, it gives back; whatever happened to it since, it notices."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.domain.events.envelope import Draft
from noetl.domain.execution.fold import fold
from noetl.domain.log import EMPTY_STREAM
from noetl.kernel import canonical_json
from noetl.kernel.errors import EventCorrupt, EventUnreadable
from noetl.testing.given import stored
from noetl.testing.histories import source_of
from noetl.testing.strategies import ANYTHING, EXECUTION, FEW_NAMES, histories, plain_values
from noetl.wire.codec import open_stored, seal

SOURCE = source_of(EXECUTION)


@given(histories(ANYTHING, events_min=1, events_max=3))
def test_every_draft_comes_back_as_it_went(drafts: list[Draft]) -> None:
    for draft, row in zip(drafts, stored(drafts, SOURCE), strict=True):
        opened = open_stored(row)
        assert opened.event == draft.event
        assert type(opened.event) is type(draft.event)
        assert opened.envelope.event_type == (draft.event_type or draft.event.TYPE)
        for field in ("event_id", "event_time", "meta", "payload_ref", "causation_id"):
            assert getattr(opened.envelope, field) == getattr(draft, field)


@given(histories(ANYTHING, events_min=1, events_max=2))
def test_bytes_at_rest_are_canonical_and_sealing_again_gives_the_same(drafts: list[Draft]) -> None:
    once, again = (seal(drafts, EMPTY_STREAM, SOURCE) for _ in range(2))
    for one, other in zip(once, again, strict=True):
        assert canonical_json.encode(msgspec.json.decode(one.canonical)) == one.canonical
        assert (one.canonical, one.checksum) == (other.canonical, other.checksum)


@given(histories(FEW_NAMES, events_min=1, events_max=1), plain_values())
def test_annotations_never_reach_the_checksum_or_the_state(
    drafts: list[Draft], locality: object
) -> None:
    annotated = [
        msgspec.structs.replace(draft, annotations={"locality": locality}) for draft in drafts
    ]
    (row,), (other,) = stored(drafts, SOURCE), stored(annotated, SOURCE)
    assert other.checksum == row.checksum
    assert open_stored(other).annotations == {"locality": locality}
    assert fold([open_stored(other)]) == fold([open_stored(row)])


@given(histories(FEW_NAMES, events_min=1, events_max=1), st.data())
def test_bytes_that_changed_are_noticed(drafts: list[Draft], data: st.DataObject) -> None:
    (row,) = stored(drafts, SOURCE)
    place = data.draw(st.integers(0, len(row.canonical) - 1))
    changed = bytearray(row.canonical)
    changed[place] ^= data.draw(st.integers(1, 255))
    damaged = msgspec.structs.replace(row, canonical=bytes(changed))
    with pytest.raises(EventCorrupt):
        open_stored(damaged)


@given(histories(FEW_NAMES, events_min=1, events_max=1), st.data())
def test_no_bytes_make_the_decoder_fail_in_any_other_way(
    drafts: list[Draft], data: st.DataObject
) -> None:
    (row,) = stored(drafts, SOURCE)
    start = data.draw(st.integers(0, len(row.canonical)))
    end = data.draw(st.integers(start, len(row.canonical)))
    canonical = row.canonical[:start] + data.draw(st.binary(max_size=8)) + row.canonical[end:]
    damaged = msgspec.structs.replace(row, canonical=canonical)
    try:
        open_stored(damaged, verify=False)
    except EventUnreadable:
        return
