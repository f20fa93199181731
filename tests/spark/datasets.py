"""Datasets in a folder, as loops leave them, and jobs over them."""

from pathlib import Path
from typing import Any

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.ports.spark_jobs import SparkInput, SparkOrder
from noetl.results.dataset import DatasetManifest, DatasetPart, frame_content
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.places import only
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.spark.object_place import ObjectPlace, place_at, url_of_home

EXECUTION = ExecutionId("655648128737706002")
STEP = StepName("load")

Outcome = dict[str, Any]


class DatasetScene:
    """A home with results in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        url = url_of_home(home)
        self.place: ObjectPlace = place_at(url, ObjectPlace(url=url).placement)
        self.objects = FilesystemObjectStore(home / "payloads")
        chain = ReadChain([], only(self.objects), home / "scratch")
        payloads = ObjectPayloadStore(self.objects)
        self.results = ResultStore(self.objects, payloads, self.place.placement, chain)

    async def dataset(self, *frames: list[Outcome], inline: bool = False, step: str = STEP) -> str:
        """Its name; every frame is an object, or all stand in the manifest."""
        parts: list[DatasetPart] = []
        first = 0
        for index, rows in enumerate(frames):
            if inline:
                part = DatasetPart(first=first, rows=len(rows), outcomes=rows)
            else:
                name = result_name(StepName(step), frame=index)
                reference = await self.results.stage_rows(name, frame_content(rows))
                part = DatasetPart(first=first, rows=len(rows), reference=reference)
            parts.append(part)
            first += len(rows)
        whole = DatasetName(
            tenant="default", project="default", execution_id=EXECUTION, step=StepName(step)
        )
        manifest = DatasetManifest(loop={"count": first}, parts=parts)
        return (await self.results.stage_dataset(whole, manifest)).uri

    async def single(self, value: Any, step: str) -> str:
        """A result outside of its event."""
        name = result_name(StepName(step))
        result = await self.results.record(name, value, inline_bytes_max=0)
        assert result.reference is not None
        return result.reference.uri


def result_name(step: StepName, frame: int = 0, attempt: int = 1) -> ResultName:
    return ResultName(
        tenant="default",
        project="default",
        execution_id=EXECUTION,
        step=step,
        frame=frame,
        attempt=attempt,
    )


def ok(index: int, value: Any) -> Outcome:
    return {"index": index, "status": "ok", "value": value}


def failed(index: int, message: str) -> Outcome:
    return {"index": index, "status": "failed", "error": {"kind": "unknown", "message": message}}


def order(step: str, *, claim: int = 1, **given: Any) -> SparkOrder:
    """A job of a step, by the holder with this claim."""
    inputs = [SparkInput(name=name, result=uri) for name, uri in given.pop("datasets", {}).items()]
    return SparkOrder(
        cycle=f"{EXECUTION}/{step}",
        result=result_name(StepName(step), attempt=claim).uri,
        inputs=[*inputs, *given.pop("inputs", [])],
        **given,
    )
