"""Lines on stderr: one JSON object each for programs, one readable line each for people."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from noetl.bootstrap.logs import configure_logs
from noetl.bootstrap.settings import LogFormat, LogLevel, Settings
from noetl.kernel.ids import ExecutionId
from noetl.ports.telemetry import trace_of
from noetl.runtime.log_lines import about

LOG = logging.getLogger("noetl.tests")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("noetl")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def configured(form: LogFormat | None = "json", level: LogLevel | None = "info") -> None:
    configure_logs(Settings(log_format=form, log_level=level), "warning")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_line_says_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    configured()
    LOG.info("lease expired", extra=about(execution_id="77", step="load", worker="w1", claim=None))

    (line,) = lines(capsys)

    assert line["message"] == "lease expired"
    assert (line["level"], line["logger"]) == ("info", "noetl.tests")
    assert (line["execution_id"], line["step"], line["worker"]) == ("77", "load", "w1")
    assert line["trace_id"] == trace_of(ExecutionId("77"))
    assert "claim" not in line
    assert line["time"].endswith("Z")


def test_an_error_keeps_its_place_in_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    configured()
    try:
        int("five\nlines")
    except ValueError:
        LOG.exception("a service failed")
    (line,) = lines(capsys)
    assert "test_logs.py" in line["exception"]


def test_text_is_one_line_whatever_others_say(capsys: pytest.CaptureFixture[str]) -> None:
    configured("text")
    LOG.warning("odd: %s", "a\nb\x1b[2J", extra=about(worker="w\n1"))
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(" warning: odd: a\\nb\\x1b[2J (worker w\\n1)\n")


def test_the_level_is_the_settings_else_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    configured(level=None)
    LOG.info("too quiet")
    LOG.warning("loud")
    configured(level="error")
    LOG.warning("too quiet now")
    assert [line["message"] for line in lines(capsys)] == ["loud"]


def test_of_libraries_only_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    configured(level="debug")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("asyncio").error("Task exception was never retrieved")
    assert [line["logger"] for line in lines(capsys)] == ["asyncio"]


def test_without_a_terminal_the_form_is_json() -> None:
    assert configure_logs(Settings(), "info") == "json"
    assert configure_logs(Settings(), "warning", "text") == "text"
    assert configure_logs(Settings(log_format="json"), "warning", "text") == "json"


def test_configuring_twice_says_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    configured()
    configured()
    LOG.info("once")
    assert len(lines(capsys)) == 1
