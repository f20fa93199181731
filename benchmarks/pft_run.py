"""One run of the PFT playbook on an engine of its own, in a process that measures itself.

python -m benchmarks.pft_run < SETTING, as JSON
"""

import asyncio
import sys
import tempfile
import time
from typing import Any

import msgspec

from benchmarks.measurement import ROOT
from benchmarks.pft_log import EngineName, FrameCounts, counted
from benchmarks.process_tree import tree_cpu_seconds
from benchmarks.stage_limits import SPARK_MASTER
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.credential import NewCredential
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.servers.postgres import login_of
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of

PLAYBOOK = ROOT / "examples" / "pft" / "pft_postgres.yaml"
CREDENTIAL = "pft_postgres"
WARM_PATIENTS = 5
END_SECONDS = 900.0


class PftSetting(msgspec.Struct):
    engine: EngineName
    facilities: int
    patients: int
    api: str
    api_pid: int
    dsn: str
    postgres_pid: int
    seconds_max: float = END_SECONDS


class PftRun(msgspec.Struct):
    """`rows` and `wrong` are what the playbook counted in the database when it was done."""

    seconds: float
    engine_cpu_seconds: float  # control plane, and the slots of the local engine
    children_cpu_seconds: float  # Spark: the driver, its JVM and its Python workers
    postgres_cpu_seconds: float
    api_cpu_seconds: float
    rows: int
    wrong: list[str]
    counts: FrameCounts  # what the log says


async def measured(setting: PftSetting) -> PftRun:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as home:
        settings = Settings(home=home, stage_engine=setting.engine, spark_master=SPARK_MASTER)
        async with open_engine(settings) as engine:
            await prepare(engine, setting.dsn)
            await harvested(engine, setting.api, (1, WARM_PATIENTS))  # pays for what is made once
            started, before = time.perf_counter(), _used(setting)
            size = (setting.facilities, setting.patients)
            execution, result = await harvested(engine, setting.api, size, setting.seconds_max)
            seconds, after = time.perf_counter() - started, _used(setting)
            own, tree, postgres, api = (
                end - begin for begin, end in zip(before, after, strict=True)
            )
            return PftRun(
                seconds=seconds,
                engine_cpu_seconds=own,
                children_cpu_seconds=max(0.0, tree - own),
                postgres_cpu_seconds=postgres,
                api_cpu_seconds=api,
                rows=result["rows"],
                wrong=result["wrong"],
                counts=await counted(engine.platform.log, execution),
            )


def _used(setting: PftSetting) -> tuple[float, float, float, float]:
    """Processor seconds: of this process, with its children, and of the two servers."""
    others = (tree_cpu_seconds(pid) for pid in (setting.postgres_pid, setting.api_pid))
    postgres, api = others
    return time.process_time(), tree_cpu_seconds(), postgres, api


async def prepare(engine: Engine, dsn: str) -> None:
    scope = engine.settings.scope
    credential = NewCredential(name=CREDENTIAL, type="postgres", data=login_of(dsn))
    await engine.platform.credentials.put(scope, credential)
    await engine.playbooks.register(scope, PLAYBOOK.read_text())


async def harvested(
    engine: Engine, api: str, size: tuple[int, int], seconds_max: float = END_SECONDS
) -> tuple[ExecutionId, dict[str, Any]]:
    facilities, patients = size
    payload = {"api": api, "num_facilities": facilities, "patients_per_facility": patients}
    request = StartRequest(
        scope=engine.settings.scope, path="examples/pft/postgres", payload=payload
    )
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, seconds_max)
    if ending is None or ending.status != "COMPLETED" or ending.result is None:
        raise AssertionError(ending)
    result: dict[str, Any] = plain_result(value_of(ending.result))
    return execution, result


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=PftSetting)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measured(given))))
