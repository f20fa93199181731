"""The doctor runs a slot where slots would run."""

from pathlib import Path

import pytest

import noetl
from noetl.cli.doctor_checks import examine

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
