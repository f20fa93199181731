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
    engines = Counter(
        event["body"]["worker_id"].partition("/")[0]
        for event in events
        if event["event_type"] == "frame.dispatched" and event["frame_id"] in claimed
    )
    whole = _seconds(events)
    # Until the first claim the engine may still be starting.
    working = _seconds([event for event in events if event.get("frame_id") in claimed])
    return {
        "rows": sum(rows),
        "failed rows": sum(frame.get("failed_rows", 0) for frame in frames),
        "frames": len(frames),
        "rows per frame": round(sum(full) / len(full), 1) if full else 0,
        "frames by": ", ".join(f"{engine} {count}" for engine, count in engines.most_common()),
        "events": len(events),
        "command events": sum(types[name] for name in types if name.startswith("command.")),
        "seconds": round(whole, 1),
        "of them at work": round(working, 1),
        "rows per second": round(sum(rows) / working) if working else 0,
    }


def _seconds(events: list[dict[str, Any]]) -> float:
    times = [
        datetime.fromisoformat(event["event_time"])
        for event in events
        if event["event_type"] != "frame.dispatched"  # it is asked for before it is worked on
    ]
    return (times[-1] - times[0]).total_seconds() if times else 0.0


if __name__ == "__main__":
    lines = [json.loads(line) for line in sys.stdin]
    for name, value in summary([line.get("envelope", line) for line in lines]).items():
        print(f"{name:<16} {value:,}" if isinstance(value, int) else f"{name:<16} {value}")
