"""The fixtures: small playbooks that each prove one thing, run from the command line."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from noetl.servers.seaweedfs import SeaweedS3Server
from tests.cli.shells import ANSWER_SECONDS_MAX, SLOW, Shell
from tests.examples.test_examples import EXAMPLES, pages_api

FIXTURES = EXAMPLES / "fixtures"
CORE_TOOLS = ("python", "http", "sqlite", "duckdb", "shell")
CALLS = 5

__all__ = ["pages_api"]


def run(shell: Shell, name: str, **workload: object) -> dict[str, Any]:
    given = [word for key, value in workload.items() for word in ("--set", f"{key}={value}")]
    answer: dict[str, Any] = shell.json("run", str(FIXTURES / f"{name}.yaml"), *given)
    assert answer["status"] == "COMPLETED", answer["error"]
    return answer


def events_of(shell: Shell, execution: str) -> list[dict[str, Any]]:
    told = shell.noetl("executions", "events", execution, "--all", "--json").stdout
    return [event.get("envelope", event) for event in map(json.loads, told.splitlines())]


def begun(shell: Shell, name: str, until: str, **workload: object) -> str:
    """The execution, once it has made the file `until` and its process was killed."""
    given = [word for key, value in workload.items() for word in ("--set", f"{key}={value}")]
    process = shell.begin("run", str(FIXTURES / f"{name}.yaml"), *given)
    shell.until(until)
    process.kill()
    process.communicate()
    (listed,) = shell.noetl("executions", "list", "--json").stdout.splitlines()
    return str(json.loads(listed)["execution_id"])


def test_fanout_basic(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    answer = run(shell, "fanout_basic")
    assert answer["result"] == {"done": 100, "failed": 0, "fanins": 1, "sum": 328350}
    types = Counter(event["event_type"] for event in events_of(shell, answer["execution_id"]))
    assert (types["loop.shard.enqueued"], types["loop.shard.done"]) == (100, 100)
    assert types["loop.fanin.completed"] == 1


def test_fanout_partial_failure(tmp_path: Path) -> None:
    answer = run(Shell(tmp_path), "fanout_partial_failure")
    parts = [0, 1, 2, None, 4, 5, 6, None, 8, 9]
    assert answer["result"] == {"done": 8, "failed": 2, "parts": parts}


def test_streaming_chunks(tmp_path: Path) -> None:
    answer = run(Shell(tmp_path), "streaming_chunks")
    assert answer["result"] == {"chunks": 10, "proved": list(range(10)), "rows": 10_000}


def test_tooling_non_blocking(tmp_path: Path, pages_api: str) -> None:
    shell = Shell(tmp_path)
    answer = run(shell, "tooling_non_blocking", api=pages_api)
    assert answer["result"] == dict.fromkeys(CORE_TOOLS, CALLS)
    types = Counter(event["event_type"] for event in events_of(shell, answer["execution_id"]))
    assert types["command.issued"] == types["command.completed"]
    assert types["frame.dispatched"] == types["frame.committed"]


def test_loop_state_recovery(tmp_path: Path) -> None:
    """Rows that had ended are not run again; the one under way may be, once."""
    shell = Shell(tmp_path)
    execution = begun(shell, "loop_state_recovery", "halfway", folder=tmp_path)
    (tmp_path / "go").touch()
    answer = shell.json("executions", "resume", execution)
    assert answer["result"] == {"succeeded": 100, "failed": 0}
    seen = Counter(map(int, (tmp_path / "seen").read_text().split()))
    assert set(seen) == set(range(100))
    assert {row for row, times in seen.items() if times > 1} <= {50}


@contextmanager
def busy_server(shell: Shell) -> Iterator["list[subprocess.Popen[str]]"]:
    """A server whose own worker has its hands full, so that work waits for others. The processes
    that are put into the list end with it."""
    settings = {"NOETL_WORKER_SLOTS": "1", "NOETL_LEASE_SECONDS": "3"}
    processes = [shell.begin("dev", "--port", "0", "--json", environment=settings)]
    try:
        assert processes[0].stdout is not None
        shell.address = json.loads(processes[0].stdout.readline())["address"]
        slow = shell.write("busy.yaml", SLOW)
        processes.append(shell.begin("run", slow, "--set", f"file={shell.folder / 'busy'}"))
        shell.until("busy")
        yield processes
    finally:
        (shell.folder / "busy.go").touch()
        for process in reversed(processes):
            process.terminate()
            process.communicate()


@pytest.mark.servers
def test_pvc_worker_exchange(tmp_path: Path) -> None:
    """Two processes of `noetl worker`: the first one writes and is killed, the second one reads."""
    shell = Shell(tmp_path)
    fixture, volume = str(FIXTURES / "pvc_worker_exchange.yaml"), f"volume={tmp_path}"
    with busy_server(shell) as processes:
        worker = ("worker", "--server", shell.address, "--slots", "1", "--name")
        writer = shell.begin(*worker, "writer")
        processes.append(writer)
        client = shell.begin("run", fixture, "--set", volume, "--json")
        processes.append(client)
        shell.until("written")
        processes.append(shell.begin(*worker, "reader"))
        writer.kill()
        (tmp_path / "taken_over").touch()
        out, _ = client.communicate(timeout=ANSWER_SECONDS_MAX)
    answer = json.loads(out)
    found = {"rows": 100_000, "amount": sum(number % 97 for number in range(100_000))}
    assert (answer["status"], answer["result"]) == ("COMPLETED", found), answer["error"]


def test_pvc_worker_exchange_fails_when_the_writer_reads(tmp_path: Path) -> None:
    (tmp_path / "taken_over").touch()
    fixture, volume = str(FIXTURES / "pvc_worker_exchange.yaml"), f"volume={tmp_path}"
    answer = Shell(tmp_path).json("run", fixture, "--set", volume)
    assert answer["status"] == "FAILED"
    assert "the worker that wrote the file went on" in answer["error"]["message"]


@pytest.mark.servers
def test_minio_large_result(tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str) -> None:
    shell = Shell(tmp_path)
    shell.environment |= {
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "AWS_REGION": s3_server.region,
        "NOETL_PAYLOAD_URL": f"s3://{s3_bucket}?endpoint={quote(s3_server.endpoint)}",
    }
    answer = run(shell, "minio_large_result")
    assert answer["result"] == {"rows": 500_000, "store": "minio"}
    assert not any(
        file for _, _, files in os.walk(tmp_path / ".noetl" / "payloads") for file in files
    )


def test_every_fixture_is_run_here() -> None:
    here = Path(__file__).read_text()
    assert not [
        path.stem for path in FIXTURES.glob("*.yaml") if f"def test_{path.stem}(" not in here
    ]
