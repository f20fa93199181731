"""Freeze what this build writes: `python -m scripts.golden v0.2` adds tests/golden/v0.2.

Add-only. A file that is there already must come out the same, or nothing is written at all.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from noetl.domain.events import EVENT_CLASSES
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import FOLD_VERSION, evolve
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import StoredEvent
from noetl.domain.surfaces import checksum_bundle, open_rows, plain, state_checksum
from noetl.kernel import canonical_json
from noetl.wire.codec import open_stored
from scripts.golden_corpus import vectors
from scripts.golden_corpus.examples import examples
from scripts.golden_corpus.files import (
    GOLDEN,
    as_compact_json,
    as_json,
    as_lines,
    corpora,
    event_line,
    read_json,
    read_lines,
    row_line,
    stored,
)
from scripts.golden_corpus.histories import HISTORIES, rows

KNOWN = ("ctx", "results", "tokens", "open_steps", "failed", "ended_in")
"""What decisions are made from, beside the rows that checksums prove."""

NAME = re.compile(r"v[0-9][0-9.]*")


def corpus(name: str, golden: Path = GOLDEN) -> dict[Path, bytes]:
    """What this build adds to the other corpora, by its path."""
    folder = golden / name
    others = [other for other in corpora(golden) if other.name != name]
    files = {
        folder / "snowflakes.json": as_json(vectors.snowflake_vectors()),
        folder / "canonical_json.json": as_json(vectors.canonical_json_vectors()),
        folder / "upcaster_registry.json": as_json(vectors.upcaster_registry_vectors()),
    }
    for cls in EVENT_CLASSES:
        path = Path("events") / f"{cls.TYPE}.v{cls.VERSION}.jsonl"
        lines = as_lines(event_line(sealed) for sealed in examples(cls))
        if not _is_frozen(path, lines, others):
            files[folder / path] = lines
    for history, streams in HISTORIES.items():
        log = rows(streams())
        path = Path("histories") / f"{history}.jsonl"
        lines = as_lines(map(row_line, log))
        if not _is_frozen(path, lines, others):
            files[folder / path] = lines
            files[folder / path.with_suffix(".expected.json")] = as_compact_json(expected(log))
    return files | dict(_replays(name, golden, others))


def _is_frozen(path: Path, data: bytes, others: list[Path]) -> bool:
    return any((other / path).exists() and (other / path).read_bytes() == data for other in others)


def _replays(name: str, golden: Path, others: list[Path]) -> Iterator[tuple[Path, bytes]]:
    """Histories of other corpora that no corpus has folded with this build's fold."""
    for older in others:
        for path in sorted((older / "histories").glob("*.jsonl")):
            answers = [
                path.with_suffix(".expected.json"),
                *golden.glob(f"*/replays/{older.name}/{path.stem}.expected.json"),
            ]
            folds = {read_json(answer)["fold_version"] for answer in answers if answer.exists()}
            if FOLD_VERSION not in folds:
                log = [stored(line) for line in read_lines(path)]
                target = golden / name / "replays" / older.name / f"{path.stem}.expected.json"
                yield target, as_compact_json(expected(log))


def expected(log: list[StoredEvent]) -> dict[str, Any]:
    """What every build with the same fold must make of the rows."""
    executions = list(dict.fromkeys(row.execution_id for row in log))
    streams = [[row for row in log if row.execution_id == name] for name in executions]
    return {
        "fold_version": FOLD_VERSION,
        "canonical_form": canonical_json.FORM,
        "streams": [_expected_stream([open_stored(row) for row in stream]) for stream in streams],
    }


def _expected_stream(events: list[RecordedEvent]) -> dict[str, Any]:
    finished: dict[Surface, list[Any]] = {surface: [] for surface in SURFACES}
    accumulator = Accumulator(
        ExecutionState(), lambda surface, row: finished[surface].append(plain(row))
    )
    state = accumulator.state
    checksums, points = [], []
    wanted = {len(events) // 3, len(events) * 2 // 3, len(events)}
    for recorded in events:
        evolve(accumulator, recorded.envelope, recorded.event)
        checksums.append(state_checksum(state))
        if state.stream_version in wanted:
            points.append(_point(state))
    return {
        "execution_id": state.execution.execution_id,
        "tenant_id": state.execution.tenant_id,
        "organization_id": state.execution.organization_id,
        "state_checksums": checksums,
        "points": points,
        "rows": {surface: finished[surface] + open_rows(state, surface) for surface in SURFACES},
    }


def _point(state: ExecutionState) -> dict[str, Any]:
    known = plain(state)
    return {
        "stream_version": state.stream_version,
        "status": state.execution.status,
        "event_count": state.execution.event_count,
        "unknown_events": state.execution.unknown_events,
        "unmatched_events": state.execution.unmatched_events,
        "last_event_id": state.execution.last_event_id,
        "payload_refs": plain(state.execution.payload_refs),
        "projection_checksums": checksum_bundle(state),
        "state_checksum": state_checksum(state),
        "known": {field: known[field] for field in KNOWN},
    }


def write(files: dict[Path, bytes]) -> list[Path]:
    """Add what is missing. Refuses as a whole when a file that is there would change."""
    changed = [path for path, data in files.items() if path.exists() and path.read_bytes() != data]
    if changed:
        names = "\n".join(str(path) for path in sorted(changed))
        raise SystemExit(f"these are frozen and would change; choose a new folder:\n{names}")
    missing = [path for path in files if not path.exists()]
    for path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
    return missing


def main(arguments: list[str]) -> None:
    if len(arguments) != 1 or NAME.fullmatch(arguments[0]) is None:
        raise SystemExit("say which folder to add: python -m scripts.golden v0.2")
    added = write(corpus(arguments[0]))
    print(f"{len(added)} files added, none changed")


if __name__ == "__main__":
    main(sys.argv[1:])
