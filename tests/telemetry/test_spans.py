"""Spans reach a collector, in one trace per execution, whoever told them and however often."""

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from noetl.adapters.system.clock import SystemClock
from noetl.adapters.telemetry.otlp import OtlpTelemetry
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.work import Work
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import ExecutionId, StepName
from noetl.ports.telemetry import EXECUTION, SpanPlace, parent_in, span_of, step_key, trace_of
from noetl.runtime.starting import StartRequest
from noetl.testing.desk_words import CHAIN, ROWS
from tests.api.running import running_api
from tests.telemetry.receiver import Collector, collecting
from tests.unit.runtime.desk_scene import Scene

pytestmark = pytest.mark.servers

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
SECRET = "tulip-4711"
TEXT = f"""{HEAD}metadata: {{name: spans, path: tests/spans}}
workload: {{password: "{SECRET}"}}
workflow:
  - step: start
    tool: {{kind: python, input: {{word: "{{{{ workload.password }}}}"}}, code: "result = word"}}
    next: each
  - step: each
    loop:
      in: "{{{{ range(4) | list }}}}"
      iterator: row
      spec: {{mode: parallel, frame: {{max_rows: 2}}}}
    tool: {{kind: noop}}
"""
FAILING = f"""{HEAD}metadata: {{name: failing, path: tests/failing}}
workflow:
  - {{step: start, tool: {{kind: shell, cmds: ["exit 3"]}}}}
"""
WORKER = """
import asyncio, sys
from noetl.bootstrap.remote_worker import run_worker
from noetl.bootstrap.settings import Settings
settings = Settings(home=sys.argv[2], internal_key=sys.argv[3], otlp_endpoint=sys.argv[4] or None)
asyncio.run(run_worker(settings, sys.argv[1], 4))
"""


async def run(engine: Engine, text: str) -> ExecutionId:
    entry = (await engine.playbooks.register(engine.settings.scope, text)).entry
    request = StartRequest(scope=engine.settings.scope, path=entry.path)
    execution = await engine.starter.start(request)
    assert await engine.coordinator.ending(execution, 60) is not None
    return execution


def settings(home: Path, collector: Collector) -> Settings:
    return Settings(home=str(home), otlp_endpoint=collector.endpoint)


async def test_an_execution_is_one_trace_from_its_begin_to_its_tools(tmp_path: Path) -> None:
    async with collecting() as collector, open_engine(settings(tmp_path, collector)) as engine:
        execution = await run(engine, TEXT)

    assert {span.trace_id for span in collector.spans} == {trace_of(execution)}
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert {span.attributes["noetl.execution_id"] for span in collector.spans} == {execution}
    assert {span.service["service.name"] for span in collector.spans} == {"noetl"}
    (top,) = collector.of("execution")
    assert (top.name, top.parent_id) == ("execution tests/spans", "")
    assert top.attributes["noetl.status"] == "COMPLETED"
    steps = {span.attributes["noetl.step"]: span for span in collector.of("step")}
    assert set(steps) == {"start", "each"}
    assert {span.parent_id for span in steps.values()} == {top.span_id}
    (command,) = collector.of("command")
    assert command.parent_id == steps["start"].span_id
    assert command.attributes["noetl.worker"] == "local"
    frames = collector.of("frame")
    assert [frame.parent_id for frame in frames] == [steps["each"].span_id] * 2
    tools = {span.span_id: span for span in collector.of("tool")}
    python, noops = (
        [t for t in tools.values() if t.attributes["noetl.tool"] == "python"],
        [t for t in tools.values() if t.attributes["noetl.tool"] == "noop"],
    )
    assert [span.parent_id for span in python] == [command.span_id]
    assert {span.parent_id for span in noops} == {frame.span_id for frame in frames}
    assert len(noops) == 4
    assert {span.parent_id for span in collector.of("append")} == {top.span_id}
    assert all(span.ended >= span.began > 0 for span in collector.spans)
    assert not any(span.is_error for span in collector.spans)
    assert SECRET not in str(collector.spans)


async def test_a_failure_is_told_by_its_kind_at_every_level(tmp_path: Path) -> None:
    async with collecting() as collector, open_engine(settings(tmp_path, collector)) as engine:
        await run(engine, FAILING)

    for kind in ("execution", "step", "command", "tool"):
        (span,) = collector.of(kind)
        assert span.is_error, kind
        assert span.message, kind


@pytest.mark.parametrize("server_tells", [True, False], ids=["both", "worker alone"])
async def test_a_worker_elsewhere_goes_on_with_the_servers_trace(
    tmp_path: Path, server_tells: bool
) -> None:
    async with collecting() as collector:
        key = "for-workers-only"
        told = collector.endpoint if server_tells else None
        home = Settings(home=str(tmp_path), internal_key=key, otlp_endpoint=told)
        async with running_api(home, has_worker=False) as api:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-c", WORKER, api.address, str(tmp_path), key, collector.endpoint
            )
            execution = ExecutionId(await api.start(TEXT))
            await api.ended(execution)
            worker.terminate()
            assert await worker.wait() == 0

    assert {span.trace_id for span in collector.spans} == {trace_of(execution)}
    (command,) = collector.of("command")
    assert command.parent_id == span_of(execution, step_key(StepName("start"), 1))
    assert command.service["service.instance.id"] == "worker"
    servers = {span.attributes["noetl.kind"] for span in collector.spans} - {
        "command",
        "frame",
        "tool",
    }
    assert servers == ({"execution", "step", "append"} if server_tells else set())


async def test_a_restart_goes_on_with_the_same_trace(tmp_path: Path) -> None:
    async with collecting() as collector:
        async with open_engine(settings(tmp_path, collector), has_worker=False) as engine:
            entry = (await engine.playbooks.register(engine.settings.scope, TEXT)).entry
            request = StartRequest(scope=engine.settings.scope, path=entry.path)
            execution = await engine.starter.start(request)
        before = len(collector.spans)
        async with open_engine(settings(tmp_path, collector)) as engine:
            assert await engine.coordinator.ending(execution, 60) is not None

    assert 0 < before < len(collector.spans)
    assert {span.trace_id for span in collector.spans} == {trace_of(execution)}
    (top,) = collector.of("execution")
    assert top.span_id == span_of(execution, EXECUTION)
    assert top.began <= min(span.began for span in collector.spans)


async def test_a_span_stands_below_what_its_work_carried_and_tells_the_error_that_left_it() -> None:
    carried = f"00-{'a' * 32}-{'b' * 16}-01"
    place = SpanPlace("command", "command load", ExecutionId("7"), ("c",), ("s",), carried)
    async with collecting() as collector:
        telemetry = OtlpTelemetry(collector.endpoint, {}, SystemClock(), lambda: "c" * 32)
        with pytest.raises(ClaimLost), telemetry.span(place, {"noetl.step": None}):
            raise ClaimLost("7/load", f"was lost with {SECRET}")
        await telemetry.close()

    (span,) = collector.spans
    assert (span.trace_id, span.parent_id) == ("a" * 32, "b" * 16)
    assert (span.is_error, span.message) == (True, ClaimLost.code)
    assert "noetl.step" not in span.attributes


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_work_carries_the_span_of_its_step_only_when_spans_are_told(text: str) -> None:
    scene = Scene()
    untold = await _first(scene, text)
    held = scene.coordinator.held
    terms = msgspec.structs.replace(held.terms, is_traced=True)
    scene.coordinator.held = msgspec.structs.replace(held, terms=terms)
    told = await _first(scene, text)

    assert untold.traceparent == ""
    assert parent_in(told.traceparent) == (
        trace_of(told.execution_id),
        span_of(told.execution_id, step_key(told.step, 1)),
    )


async def _first(scene: Scene, text: str) -> Work:
    await scene.start(text, count=1)
    return await scene.claim_one()


async def test_a_collector_that_is_away_disturbs_nothing(tmp_path: Path) -> None:
    away = Settings(home=str(tmp_path), otlp_endpoint="http://127.0.0.1:9")
    async with open_engine(away) as engine:
        await run(engine, FAILING)


def test_without_the_setting_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys, asyncio, noetl.cli.run, noetl.bootstrap.remote_worker\n"
        "from noetl.bootstrap.engine import open_engine\n"
        "from noetl.bootstrap.settings import Settings\n"
        "async def main():\n"
        f"    async with open_engine(Settings(home={str(tmp_path)!r})): pass\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if 'telemetry' in name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['noetl.ports.telemetry', 'noetl.bootstrap.telemetry']"
