"""Events that were ever written still open, and writing them again gives the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from noetl.domain.events import CATALOGUE, EVENT_CLASSES, Event, UnknownEvent
from noetl.domain.events.envelope import Draft, RecordedEvent, Source
from noetl.domain.log import SealedEvent, StreamHead
from noetl.kernel import canonical_json
from noetl.wire.codec import open_stored, seal
from scripts.golden_corpus.files import corpora, read_lines, stored

FILES = [path for corpus in corpora() for path in sorted((corpus / "events").glob("*.jsonl"))]
LINES = [
    pytest.param(path, line, id=f"{path.parts[-3]}/{path.stem}/{number}")
    for path in FILES
    for number, line in enumerate(read_lines(path))
]
C1_MOVED = "canonical form c1 moved: hashes outlive encoders, so restore it or name a new form"
EVENT_MOVED = (
    "the event is written in another way: restore it, or bump its VERSION with an upcaster"
)


@pytest.mark.parametrize("cls", EVENT_CLASSES, ids=lambda cls: cls.TYPE)
def test_every_version_of_every_event_is_frozen(cls: type[Event]) -> None:
    frozen = {path.name for path in FILES}

    for version in range(1, cls.VERSION + 1):
        name = f"{cls.TYPE}.v{version}.jsonl"
        assert name in frozen, f"no corpus has {name}: run python -m scripts.golden"


@pytest.mark.parametrize(("path", "line"), LINES)
def test_a_frozen_event_opens(path: Path, line: dict[str, Any]) -> None:
    name, version = path.stem.rsplit(".v", 1)

    recorded = open_stored(stored(line))  # compares the checksum, too

    assert recorded.envelope.schema_name == f"noetl.{name}"
    assert recorded.envelope.schema_version == int(version)
    assert type(recorded.event) is CATALOGUE[name] is not UnknownEvent


@pytest.mark.parametrize(("path", "line"), LINES)
def test_its_bytes_are_what_the_encoder_writes(path: Path, line: dict[str, Any]) -> None:
    text = line["canonical"]

    assert canonical_json.encode(json.loads(text)).decode() == text, C1_MOVED
    assert canonical_json.sha256_hex(text.encode()) == line["checksum"]


@pytest.mark.parametrize(("path", "line"), LINES)
def test_sealed_again_it_is_the_same_event(path: Path, line: dict[str, Any]) -> None:
    recorded = open_stored(stored(line))
    if recorded.envelope.schema_version != recorded.event.VERSION:
        return  # an older version: this build reads it and never writes it

    again = sealed_again(recorded)

    assert again.canonical.decode() == line["canonical"], EVENT_MOVED
    assert again.checksum == line["checksum"]


def sealed_again(recorded: RecordedEvent) -> SealedEvent:
    envelope = recorded.envelope
    own_name = envelope.event_type if envelope.event_type != recorded.event.TYPE else None
    draft = Draft(
        event_id=envelope.event_id,
        event=recorded.event,
        event_time=envelope.event_time,
        event_type=own_name,
        causation_id=envelope.causation_id,
        parent_event_id=envelope.parent_event_id,
        idempotency_key=envelope.idempotency_key,
        payload_ref=envelope.payload_ref,
        stage_id=envelope.stage_id,
        frame_id=envelope.frame_id,
        command_id=envelope.command_id,
        meta=envelope.meta,
    )
    source = Source(
        scope=envelope.scope,
        execution_id=envelope.execution_id,
        producer=envelope.producer,
        catalog_id=envelope.catalog_id,
        parent_execution_id=envelope.parent_execution_id,
        correlation_id=envelope.correlation_id,
    )
    head = StreamHead(envelope.stream_version - 1, envelope.prev_event_id)
    (sealed,) = seal([draft], head, source)
    return sealed
