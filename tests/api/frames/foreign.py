"""A worker of another make, and stages for it to work on."""

from dataclasses import dataclass
from typing import Any

from tests.api.running import Answer, Api

LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: frames, path: tests/frames}
workload: {count: 6, lease: 60}
workflow:
  - step: each
    loop:
      in: "{{ range(count) | list }}"
      spec:
        mode: parallel
        max_in_flight: 4
        frame: {max_rows: 2, row_concurrency: 2, lease_seconds: LEASE, max_attempts: 3}
    tool: {kind: noop}
"""
FANOUT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shards, path: tests/shards}
workflow:
  - step: each
    loop: {in: [a, b], spec: {mode: fanout, max_in_flight: 2, engine: local}}
    tool: {kind: noop}
"""


@dataclass
class Foreign:
    """Knows HTTP, stages and frames, and nothing else."""

    api: Api
    worker_id: str

    async def post(self, path: str, **body: Any) -> Answer:
        body = {"worker_id": self.worker_id, **body}
        return await self.api.call("POST", path, json=body, headers=self.api.as_worker)

    async def ask(self, stage: str, **body: Any) -> Answer:
        return await self.post(f"/api/stages/{stage}/frames/claim", **body)

    async def claim(self, stage: str, **body: Any) -> list[dict[str, Any]]:
        answer = await self.ask(stage, **body)
        assert answer.status == 200, answer
        frames: list[dict[str, Any]] = answer.body
        return frames

    async def beat(self, frame: dict[str, Any], **body: Any) -> Answer:
        body = {"attempt": frame.get("attempt"), **body}
        return await self.post(f"/api/frames/{frame['frame_id']}/heartbeat", **body)

    async def commit(self, frame: dict[str, Any], **body: Any) -> Answer:
        body = {"attempt": frame.get("attempt"), **body}
        return await self.post(f"/api/frames/{frame['frame_id']}/commit", **body)

    async def square(self, frame: dict[str, Any], **body: Any) -> Answer:
        rows = [{"value": row * row} for row in frame["work"]["rows"]]
        return await self.commit(frame, row_count=len(rows), outcomes=rows, **body)


async def start(api: Api, text: str = LOOP, *, lease: float = 60, **payload: Any) -> str:
    return await api.start(text.replace("LEASE", str(lease)), **payload)


async def stage_of(api: Api, execution: str) -> str:
    (stage,) = (await api.get(f"/api/executions/{execution}/stages"))["stages"]
    return str(stage["stage_id"])


async def events_of(api: Api, execution: str, event_type: str) -> list[dict[str, Any]]:
    page = await api.get(f"/api/executions/{execution}/events", page_size=500)
    return [event for event in page["events"] if event["event_type"] == event_type]


async def frames_of(api: Api, execution: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/api/executions/{execution}/frames"))["frames"]
    return found
