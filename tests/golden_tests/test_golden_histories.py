"""Old histories fold to the states they always folded to."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.domain.events import CATALOGUE
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import FOLD_VERSION, evolve, fold
from noetl.domain.execution.state import ExecutionState
from noetl.domain.surfaces import checksum_bundle, live_checksum_bundle, plain, state_checksum
from noetl.kernel import canonical_json
from noetl.wire.codec import open_stored
from scripts.golden_corpus.files import GOLDEN, corpora, read_json, read_lines, stored

HISTORIES = [
    pytest.param(path, id=f"{corpus.name}/{path.stem}")
    for corpus in corpora()
    for path in sorted((corpus / "histories").glob("*.jsonl"))
]
MOVED = (
    "checksums moved: bump FOLD_VERSION in domain/execution/fold.py"
    " and add a new corpus folder, never edit this one"
)
HISTORIES_MIN = 8


def streams_of(path: Path) -> dict[str, list[RecordedEvent]]:
    streams: dict[str, list[RecordedEvent]] = {}
    for line in read_lines(path):
        recorded = open_stored(stored(line))
        streams.setdefault(recorded.envelope.execution_id, []).append(recorded)
    return streams


def answers_to(path: Path) -> list[dict[str, Any]]:
    """What each fold made of the history: the first answer beside it, later ones in new corpora."""
    corpus = path.parts[-3]
    later = GOLDEN.glob(f"*/replays/{corpus}/{path.stem}.expected.json")
    return [read_json(answer) for answer in (path.with_suffix(".expected.json"), *sorted(later))]


def expected_of(path: Path) -> list[dict[str, Any]]:
    (answer,) = [each for each in answers_to(path) if each["fold_version"] == FOLD_VERSION] or [{}]
    assert answer, f"no answer of fold {FOLD_VERSION} to {path.stem}: run python -m scripts.golden"
    assert answer["canonical_form"] == canonical_json.FORM, MOVED
    streams: list[dict[str, Any]] = answer["streams"]
    return streams


@pytest.mark.parametrize("path", HISTORIES)
def test_it_folds_to_the_same_state_at_every_version(path: Path) -> None:
    streams = streams_of(path)
    for expected in expected_of(path):
        accumulator = Accumulator(ExecutionState())
        checksums = []
        for recorded in streams.pop(expected["execution_id"]):
            evolve(accumulator, recorded.envelope, recorded.event)
            checksums.append(state_checksum(accumulator.state))
        assert checksums == expected["state_checksums"], MOVED
    assert streams == {}


@pytest.mark.parametrize("path", HISTORIES)
def test_its_six_projections_are_the_same_on_the_way_and_at_the_end(path: Path) -> None:
    streams = streams_of(path)
    for expected in expected_of(path):
        events = streams[expected["execution_id"]]
        assert expected["points"][-1]["stream_version"] == len(events)
        for point in expected["points"]:
            state = fold(events[: point["stream_version"]])
            assert checksum_bundle(state) == point["projection_checksums"], MOVED
            assert state_checksum(state) == point["state_checksum"], MOVED
            assert plain(state.execution.payload_refs) == point["payload_refs"], MOVED
            row = plain(state.execution)
            assert {name: row[name] for name in row if name in point} == {
                name: point[name] for name in row if name in point
            }, MOVED
            assert (row["tenant_id"], row["organization_id"]) == (
                expected["tenant_id"],
                expected["organization_id"],
            )


@pytest.mark.parametrize("path", HISTORIES)
def test_what_is_known_on_the_way_is_the_same(path: Path) -> None:
    streams = streams_of(path)
    for expected in expected_of(path):
        events = streams[expected["execution_id"]]
        for point in expected["points"]:
            state = plain(fold(events[: point["stream_version"]]))
            assert {name: state[name] for name in point["known"]} == point["known"], MOVED
            assert "ctx" in point["known"]


@pytest.mark.parametrize("path", HISTORIES)
def test_its_rows_alone_prove_the_same_checksums(path: Path) -> None:
    for expected in expected_of(path):
        last = expected["points"][-1]
        assert live_checksum_bundle(expected["rows"]) == last["projection_checksums"], MOVED


@pytest.mark.parametrize("path", HISTORIES)
def test_a_state_frozen_on_the_way_goes_on_as_if_nothing_happened(path: Path) -> None:
    streams = streams_of(path)
    for expected in expected_of(path):
        events = streams[expected["execution_id"]]
        for version in range(len(events)):
            frozen = canonical_json.encode(fold(events[:version]))
            state = fold(events[version:], msgspec.json.decode(frozen, type=ExecutionState))
            assert state_checksum(state) == expected["state_checksums"][-1]


def test_the_histories_take_every_event() -> None:
    taken: set[str] = set()
    for parameters in HISTORIES:
        (path,) = parameters.values
        assert isinstance(path, Path)
        for events in streams_of(path).values():
            taken |= {recorded.event.TYPE for recorded in events}

    assert taken == {*CATALOGUE, "unknown"}
    assert len(HISTORIES) >= HISTORIES_MIN
