"""Runs golden playbooks on an engine of their own and says what became of each.

Beside `<name>.yaml` lies `<name>.expected.json`: `payload` is what the request brings besides the
addresses below, `needs` which servers there must be, and everything else is what the run must come
to. `${api}`, `${folder}` and `${execution_id}` in it stand for what differs from run to run.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from noetl.bootstrap.engine import Engine
from noetl.domain.credential import NewCredential
from noetl.domain.events import StepEntered
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.fold import fold
from noetl.kernel.ids import ExecutionId
from noetl.runtime.endings import Ending
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.wire.codec import open_stored
from tests.golden_tests.golden_api import TOKEN, GoldenApi

_PLAYBOOKS = Path(__file__).resolve().parents[1] / "golden" / "playbooks"
FOLDERS = tuple(_PLAYBOOKS / version / "runs" for version in ("v0.2", "v0.3", "v0.4"))
GIVEN_FILES = "files"
"""The part of an engine's home that the tests fill."""

RUN_SECONDS_MAX = 60.0
EVENTS_MAX = 100_000

SECRETS = {
    "bearer": "golden-bearer-8c1f77e2",
    "key": "golden-api-key-40d2ab91",
    "password": "golden-pass/word+e7 61",
    "static": "golden-static-b92e01",
    "file": "golden-file-3377aa",
}


@dataclass(frozen=True)
class Golden:
    """A playbook and what it comes to."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def text(self) -> str:
        return self.path.with_suffix(".expected.json").read_text(encoding="utf-8")

    @property
    def needs(self) -> list[str]:
        return list(json.loads(self.text).get("needs", []))

    def expected(self, places: Mapping[str, str]) -> dict[str, Any]:
        text = self.text
        for name, place in places.items():
            text = text.replace(f"${{{name}}}", json.dumps(place)[1:-1])
        return dict(json.loads(text))


@dataclass(frozen=True)
class GoldenRun:
    execution: ExecutionId
    ending: Ending
    events: list[RecordedEvent]
    places: dict[str, str]

    def told(self) -> dict[str, Any]:
        """Everything that an expectation may speak of."""
        ending, error = self.ending, self.ending.error
        return {
            "status": ending.status,
            "step": ending.step,
            "result": None if ending.result is None else plain_result(value_of(ending.result)),
            "error": None if error is None else {"kind": error.kind, "message": error.message},
            "ctx": fold(self.events).ctx,
            "steps": [each.event.step for each in self.events if type(each.event) is StepEntered],
            "event_counts": dict(Counter(each.envelope.event_type for each in self.events)),
        }


def goldens() -> list[Golden]:
    return [Golden(path) for folder in FOLDERS for path in sorted(folder.glob("*.yaml"))]


async def registered(engine: Engine) -> dict[str, str]:
    """Every playbook of the folders, and the path under which the catalogue has it."""
    paths = {}
    for file in (file for folder in FOLDERS for file in sorted(folder.rglob("*.yaml"))):
        found = await engine.playbooks.register(engine.settings.scope, file.read_bytes())
        paths[file.stem] = found.entry.path
    return paths


async def store_credentials(engine: Engine, further: Iterable[NewCredential]) -> None:
    for credential in (*own_credentials(), *further):
        await engine.platform.credentials.put(engine.settings.scope, credential)


def own_credentials() -> list[NewCredential]:
    bearer, key, password = (SECRETS[name] for name in ("bearer", "key", "password"))
    return [
        NewCredential(name="golden_bearer", type="bearer", data={"token": bearer}),
        NewCredential(name="golden_key", type="api_key", data={"api_key": key}),
        NewCredential(
            name="golden_login", type="http", data={"user": "clerk", "password": password}
        ),
        NewCredential(name="golden_secret", type="secret", data={"value": key}),
    ]


async def run(engine: Engine, golden: Golden, path: str, api: GoldenApi) -> GoldenRun:
    folder = Path(engine.settings.home) / GIVEN_FILES / golden.name
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text(SECRETS["file"] + "\n", encoding="utf-8")
    places = {"api": api.url, "folder": str(folder)}
    payload = {**places, **golden.expected(places).get("payload", {})}
    request = StartRequest(scope=engine.settings.scope, path=path, payload=payload)
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, RUN_SECONDS_MAX)
    assert ending is not None, f"{golden.name} has not ended after {RUN_SECONDS_MAX} seconds"
    events = await _events(engine, execution)
    return GoldenRun(execution, ending, events, {**places, "execution_id": execution})


async def _events(engine: Engine, execution: ExecutionId) -> list[RecordedEvent]:
    events: list[RecordedEvent] = []
    while page := await engine.platform.log.read(execution, after_version=len(events)):
        events += [open_stored(stored) for stored in page]
        assert len(events) < EVENTS_MAX
    return events


def hidden_texts() -> list[str]:
    return [*SECRETS.values(), TOKEN]
