"""The doctor says what is wrong, and makes nothing that was not there."""

import importlib.metadata
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from noetl.cli.doctor_checks import check_clock, check_disk, check_python
from noetl.kernel import instant
from tests.cli.shells import HELLO, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def verdicts(answer: Any) -> dict[str, str]:
    """Whatever is not in order says what to do, in its advice or in the error itself."""
    for check in answer["checks"]:
        assert check["verdict"] == "ok" or check["advice"] or "; " in check["message"], check
    return {check["name"]: check["verdict"] for check in answer["checks"]}


def test_an_empty_folder_is_in_order_and_stays_empty(shell: Shell) -> None:
    answer = shell.json("doctor")
    assert answer["ok"]
    assert verdicts(answer)["log"] == "warn"
    assert list(shell.folder.iterdir()) == []


def test_a_used_home_is_in_order_and_left_as_it_was(shell: Shell) -> None:
    shell.noetl("run", shell.write("hello.yaml", HELLO))
    payloads = shell.folder / ".noetl" / "payloads"
    before = sorted(path for path in payloads.rglob("*") if path.is_file())
    done = shell.noetl("doctor")
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}
    assert sorted(path for path in payloads.rglob("*") if path.is_file()) == before


def test_a_damaged_event_is_bad(shell: Shell) -> None:
    shell.noetl("run", shell.write("hello.yaml", HELLO))
    with sqlite3.connect(shell.folder / ".noetl" / "log.db") as connection:
        connection.execute(
            "UPDATE event SET canonical = replace(canonical, 'world', 'wOrld') WHERE position = 1"
        )
    answer = shell.json("doctor")
    assert not answer["ok"]
    assert verdicts(answer)["log"] == "bad"


def test_a_lost_key_is_found(shell: Shell) -> None:
    shell.noetl("credentials", "add", "a", "--type", "bearer", "--data", '{"token": "x"}')
    (shell.folder / ".noetl" / "secret.key").unlink()
    assert verdicts(shell.json("doctor"))["secrets"] == "bad"


def test_payloads_that_cannot_be_written_are_bad(shell: Shell) -> None:
    shell.noetl("run", shell.write("hello.yaml", HELLO))
    shutil.rmtree(shell.folder / ".noetl" / "payloads")
    (shell.folder / ".noetl" / "payloads").write_text("a file")
    assert verdicts(shell.json("doctor"))["payloads"] == "bad"


def test_a_wrong_setting_is_bad_and_the_rest_is_not_guessed(shell: Shell) -> None:
    shell.environment["NOETL_HOMME"] = "x"
    answer = shell.json("doctor")
    assert verdicts(answer) == {"python": "ok", "settings": "bad"}


def test_a_home_that_is_a_file_is_bad(shell: Shell) -> None:
    shell.write(".noetl", "a file")
    assert verdicts(shell.json("doctor"))["home"] == "bad"
    assert "to be mended first: home" in shell.noetl("doctor").stderr


def test_java_and_spark_are_looked_at_and_not_started(shell: Shell) -> None:
    answer = shell.json("doctor")
    said = {check["name"]: check["message"] for check in answer["checks"]}
    assert said["spark"].startswith(importlib.metadata.version("pyspark"))
    assert "local[" in said["spark"]
    assert said["java"]

    shell.environment["NOETL_JAVA_HOME"] = str(shell.folder)
    shell.environment["NOETL_SPARK_CONF"] = "nonsense"
    answer = shell.json("doctor")
    assert verdicts(answer)["java"] == "warn"
    assert verdicts(answer)["spark"] == "bad"
    assert "install OpenJDK 17" in str(answer["checks"])
    assert list(shell.folder.iterdir()) == []


def test_clock_disk_and_python_have_limits() -> None:
    now = instant.parse("2026-11-15T12:00:00Z")
    assert check_clock(now, None).verdict == "ok"
    assert check_clock(now, instant.plus(now, seconds=3)).verdict == "ok"
    assert check_clock(now, instant.plus(now, seconds=60)).verdict == "warn"
    assert check_clock(instant.parse("1970-01-01T00:00:00Z"), None).verdict == "bad"
    assert [check_disk(size).verdict for size in (0, 10**9, 10**12)] == ["bad", "warn", "ok"]
    assert [check_python((3, minor)).verdict for minor in (10, 11, 13, 14)] == [
        "bad", "ok", "ok", "bad",
    ]  # fmt: skip
