"""How the corpus lies on disk: JSON or JSON lines in ASCII, to be read without our code."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from noetl.domain.log import SealedEvent, StoredEvent
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"


def corpora(golden: Path = GOLDEN) -> list[Path]:
    """The folder of every release that was frozen."""
    return sorted(golden.glob("v[0-9]*"))


def as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("ascii")


def as_compact_json(value: Any) -> bytes:
    return (json.dumps(value, separators=(",", ":")) + "\n").encode("ascii")


def as_lines(objects: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in objects).encode("ascii")


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def event_line(sealed: SealedEvent) -> dict[str, Any]:
    return {"checksum": sealed.checksum, "canonical": sealed.canonical.decode()}


def row_line(row: StoredEvent) -> dict[str, Any]:
    line: dict[str, Any] = {"position": row.position, "ingest_time": row.ingest_time}
    if row.annotations is not None:
        line["annotations"] = msgspec.json.decode(row.annotations)
    return line | {"checksum": row.checksum, "canonical": row.canonical.decode()}


def stored(line: dict[str, Any]) -> StoredEvent:
    """A line of either kind as a row of the log."""
    envelope = json.loads(line["canonical"])
    annotations = line.get("annotations")
    return StoredEvent(
        ExecutionId(envelope["execution_id"]),
        envelope["stream_version"],
        line.get("position", 1),
        Instant(line.get("ingest_time", envelope["event_time"])),
        line["canonical"].encode(),
        line["checksum"],
        None if annotations is None else json.dumps(annotations).encode(),
    )
