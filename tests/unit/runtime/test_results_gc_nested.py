"""What only other objects name is as alive as they are."""

import hashlib

import msgspec
import pytest

from noetl.domain.events import PlaybookCompleted
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.results.dataset import DatasetManifest, DatasetPart
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from tests.memory_results import PLACEMENT
from tests.unit.runtime.collecting import (
    EVERYTHING,
    ORPHAN,
    Scene,
    key_of,
    name_of,
    scene,
)


class Pipeline:
    """A step's content names the table in parts of its task, which names its parts."""

    def __init__(self, here: Scene) -> None:
        self.here = here
        self.step = name_of(ORPHAN)
        self.task = msgspec.structs.replace(self.step, task="made")
        self.part = msgspec.structs.replace(self.step, task="digest.parts")
        self.keys = {self.key(self.step), self.key(self.task), self.key(self.part, "feather")}
        self.left = key_of(ORPHAN, 7)

    async def runs(self) -> None:
        part = await self.put(self.part, b"arrow", FEATHER_MEDIA_TYPE)
        listed = DatasetManifest(loop={}, parts=[DatasetPart(first=0, rows=9, reference=part)])
        task = await self.put(self.task, msgspec.json.encode(listed))
        nested = {"at": ["tasks", "made"], "keys": ["value"], "reference": task}
        named = {"order": ["made"], "stored": [nested], "tasks": {"made": None}}
        step = await self.put(self.step, msgspec.json.encode(named))
        await self.here.runs(ORPHAN, PlaybookCompleted(result=Result(status="ok", reference=step)))
        await self.here.holds(self.left)

    async def put(
        self, name: ResultName, data: bytes, media_type: str = JSON_MEDIA_TYPE
    ) -> ResultReference:
        extension = "json" if media_type == JSON_MEDIA_TYPE else "feather"
        await self.here.objects.create(self.key(name, extension), data)
        return ResultReference(
            type="object_store",
            uri=name.uri,
            sha256=hashlib.sha256(data).hexdigest(),
            byte_length=len(data),
            media_type=media_type,
        )

    def key(self, name: ResultName, extension: str = "json") -> str:
        return physical_key(name, PLACEMENT, extension)


async def test_what_stands_only_inside_other_objects_is_alive() -> None:
    here = await scene()
    pipeline = Pipeline(here)
    await pipeline.runs()

    report = await here.collect(EVERYTHING)

    assert (report.objects, report.deleted) == ({"live": 3, "superseded": 1}, 1)
    assert await here.keys() == pipeline.keys


@pytest.mark.parametrize("lost", ["step", "task"])
@pytest.mark.parametrize("is_damaged", [False, True])
async def test_while_an_object_cannot_be_read_everything_of_its_execution_stays(
    lost: str, is_damaged: bool
) -> None:
    here = await scene()
    pipeline = Pipeline(here)
    await pipeline.runs()
    key = pipeline.key(getattr(pipeline, lost))
    await here.objects.delete(key)
    if is_damaged:
        await here.objects.create(key, b'{"order":["made"],"stored":[],"tasks":{}}')
    before = await here.keys()

    report = await here.collect(EVERYTHING)

    assert (report.deleted, await here.keys()) == (0, before)
    assert report.objects == {"live": len(before)}
