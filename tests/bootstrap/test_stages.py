"""Which engine loops may have is known, and said, before any playbook runs."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.stages import stage_engines
from noetl.cli.doctor_spark import check_spark


async def test_who_wants_spark_and_has_no_java_is_told_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=str(tmp_path), java_home="/nowhere", stage_engine="spark")
    async with open_engine(settings, has_worker=False):
        [line] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "NOETL_STAGE_ENGINE is spark, and loops run on local workers" in line
    assert "/nowhere has none" in line
    assert "apt install openjdk-17" in line
    assert "pip install 'noetl[java]'" in line


def test_who_leaves_the_choice_is_told_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert stage_engines(Settings(java_home="/nowhere")) == "none"
    assert caplog.text == ""


def test_a_connect_server_has_its_own_java() -> None:
    settings = Settings(java_home="/nowhere", stage_engine="spark", spark_master="sc://far:15002")
    assert stage_engines(settings) == "spark"


def test_the_doctor_warns_of_loops_that_want_a_spark_that_is_not_installed() -> None:
    found = check_spark(Settings(stage_engine="spark"), None)
    assert (found.verdict, found.advice) == ("warn", "pip install 'noetl[spark]'")
    assert check_spark(Settings(), None).verdict == "ok"
