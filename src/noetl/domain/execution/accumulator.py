"""The moving part of the fold: a state, and where its finished rows go."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.domain.events.envelope import Envelope
from noetl.domain.events.values import ResultReference
from noetl.domain.execution.rows import Chain, ReferenceSummary, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.payload import PayloadReference
from noetl.kernel import canonical_json

RowSink = Callable[[Surface, msgspec.Struct], None]
"""Takes each row at the moment it becomes terminal."""


def drop_row(surface: Surface, row: msgspec.Struct) -> None:
    """The sink of those who need the checksums and not the rows."""


def extend(chain: Chain, link: bytes) -> None:
    chain.count += 1
    chain.digest = hashlib.sha256(bytes.fromhex(chain.digest) + link).hexdigest()


class Accumulator:
    """What a fold function may do besides changing rows: retire one, note a payload, or give up."""

    __slots__ = ("sink", "state")

    def __init__(self, state: ExecutionState, sink: RowSink = drop_row) -> None:
        self.state = state
        self.sink = sink

    def retire(self, surface: Surface, row: msgspec.Struct) -> None:
        """The row is terminal and leaves the state; the chain remembers it for ever."""
        extend(self.state.retired[surface], canonical_json.encode_recorded(row))
        self.sink(surface, row)

    def unmatched(self) -> None:
        """The event is about something that is not open: counted, and nothing else changes."""
        self.state.execution.unmatched_events += 1

    def note_reference(
        self, reference: ResultReference | PayloadReference | None
    ) -> ReferenceSummary | None:
        """Remember that the events name this payload; returns what a row keeps of it."""
        if reference is None:
            return None
        summary = ReferenceSummary(
            reference.uri,
            reference.sha256,
            reference.schema_digest,
            reference.row_count,
            reference.media_type,
        )
        extend(self.state.execution.payload_refs, canonical_json.encode_recorded(summary))
        return summary


FoldFunction = Callable[[Accumulator, Any, Envelope], None]
