"""What a run of the PFT workload cost: reads its events, one JSON object per line.

noetl executions events EXECUTION --all --json | python examples/pft/summary.py
"""

import json
import sys
from collections import Counter
from datetime import datetime
from typing import Any


def summary(events: list[dict[str, Any]]) -> dict[str, Any]:
    types = Counter(event["event_type"] for event in events)
    # The workload's frames claim their rows in a transaction; those of other loops do not.
    claimed = {
        event["frame_id"]
        for event in events
        if event["event_type"] == "frame.started" and event["body"].get("transaction_id")
    }
    frames = [
        event["body"]
        for event in events
        if event["event_type"] == "frame.committed" and event["frame_id"] in claimed
    ]
    rows = [frame.get("row_count", 0) for frame in frames]
    full = [count for count in rows if count]
    engines = {
        event["body"]["worker_id"].partition("/")[0]
        for event in events
        if event["event_type"] == "frame.dispatched"
    }
    first, last = (datetime.fromisoformat(events[at]["event_time"]) for at in (0, -1))
    seconds = (last - first).total_seconds()
    return {
        "rows": sum(rows),
        "frames": len(frames),
        "rows per frame": round(sum(full) / len(full), 1) if full else 0,
        "frames by": ", ".join(sorted(engines)),
        "events": len(events),
        "command events": sum(types[name] for name in types if name.startswith("command.")),
        "failed rows": sum(frame.get("failed_rows", 0) for frame in frames),
        "seconds": round(seconds, 1),
        "rows per second": round(sum(rows) / seconds) if seconds else 0,
    }


if __name__ == "__main__":
    lines = [json.loads(line) for line in sys.stdin]
    for name, value in summary([line.get("envelope", line) for line in lines]).items():
        print(f"{name:<16} {value:,}" if isinstance(value, int) else f"{name:<16} {value}")
