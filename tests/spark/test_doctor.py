"""The doctor runs a slot where slots would run."""

from pathlib import Path

import pytest

import noetl
from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.serving import listening
from noetl.bootstrap.settings import Settings
from noetl.cli.doctor_checks import examine
from noetl.servers.process import LOOPBACK, free_ports

pytestmark = pytest.mark.servers


async def test_spark_is_tried_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NOETL_SPARK_MASTER", "local[1,4]")
    monkeypatch.setenv("NOETL_SPARK_MEMORY_MB", "512")
    findings = await examine(with_spark=True)
    [tried] = [each for each in findings if "ran a slot" in each.message]
    assert tried.verdict == "ok"
    assert f"noetl {noetl.__version__}" in tried.message


async def test_the_way_from_a_task_to_the_server_is_tried_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    server = f"http://{LOOPBACK}:{port}"
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NOETL_SPARK_MASTER", "local[1,4]")
    monkeypatch.setenv("NOETL_SPARK_MEMORY_MB", "512")
    monkeypatch.setenv("NOETL_PUBLIC_URL", server)
    [alone] = [each for each in await examine(with_spark=True) if server in each.message]
    assert alone.verdict == "bad"
    assert "does not answer" in alone.message
    settings = Settings(home=str(tmp_path / "home"), stage_engine="local")
    async with open_engine(settings) as engine, listening(engine, LOOPBACK, port):
        examined = await examine(with_spark=True)
        [found] = [each for each in examined if each.name == "spark" and server in each.message]
    assert (found.verdict, found.name) == ("ok", "spark")
