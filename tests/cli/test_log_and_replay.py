"""The command as a person uses it, on a log that the demonstration wrote."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOETL = Path(sys.executable).with_name("noetl")


class Shell:
    """Runs the installed command in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("NOETL_")
        } | {"NOETL_HOME": str(folder / ".noetl" / "demo")}

    def noetl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._run(str(NOETL), *arguments)

    def demo(self) -> str:
        done = self._run(sys.executable, str(ROOT / "examples" / "first_log.py"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def execution(shell: Shell) -> str:
    found = re.search(r"of execution (\d+)", shell.demo())
    assert found
    return found[1]


def test_the_demonstration_proves_its_state(shell: Shell) -> None:
    told = shell.demo()
    assert "recorded   11 events" in told
    assert "DIFFERENT" not in told
    assert "from plain rows: the same" in told


def test_tail_shows_events_in_commit_order(shell: Shell, execution: str) -> None:
    first = shell.noetl("log", "tail", "--json", "--after", "0", "--limit", "5").stdout
    assert [json.loads(line)["position"] for line in first.splitlines()] == [1, 2, 3, 4, 5]
    newest = [json.loads(line) for line in shell.noetl("log", "tail", "--json").stdout.splitlines()]
    assert newest[-1]["event"]["event_type"] == "playbook.completed"
    after = shell.noetl("log", "tail", "--after", str(newest[-1]["position"]))
    assert (after.stdout, after.returncode) == ("", 0)


def test_the_time_that_tail_shows_is_a_point_of_replay(shell: Shell, execution: str) -> None:
    lines = shell.noetl("log", "tail", "--json").stdout.splitlines()
    (taken_in, *_) = {
        row["ingest_time"]
        for row in map(json.loads, lines)
        if row["event"]["execution_id"] == execution
    }
    done = shell.noetl("replay", "state", execution, "--at", f"time={taken_in}", "--json")
    assert json.loads(done.stdout)["execution"]["status"] == "COMPLETED"


def test_a_reader_that_goes_away_does_not_change_the_answer(shell: Shell, execution: str) -> None:
    pipeline = f"set -o pipefail; {NOETL} replay verify {execution} | head -1; echo $?"
    done = subprocess.run(
        ["bash", "-c", pipeline], env=shell.environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_looking_at_a_log_never_makes_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for command in (("log", "verify"), ("log", "tail"), ("replay", "state", "1")):
        done = shell.noetl(*command)
        assert done.returncode == 1
        assert "log_missing" in done.stderr
        assert "set NOETL_HOME to its .noetl, or run one here first" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", ["file", "file/below"])
def test_a_home_that_cannot_be_one_is_explained(tmp_path: Path, home: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    shell = Shell(tmp_path)
    shell.environment["NOETL_HOME"] = str(tmp_path / home)
    done = shell.noetl("log", "tail")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_replay_at_a_position_shows_what_was_open(shell: Shell, execution: str) -> None:
    first = shell.noetl("log", "export", execution).stdout.splitlines()[4]
    event = json.loads(first)["event_id"]

    done = shell.noetl(
        "replay", "state", execution, "--at", f"event={event}", "--with", "rows", "--json"
    )

    answer = json.loads(done.stdout)
    assert answer["execution"]["status"] == "RUNNING"
    assert [row["status"] for row in answer["rows"]["commands"]] == ["RUNNING"]
    assert answer["report"]["stream_version"] == 5


def test_a_point_before_the_beginning_is_said_to_be_one(shell: Shell, execution: str) -> None:
    early = ("replay", "state", execution, "--at", "time=2020-01-01T00:00:00Z")
    done = shell.noetl(*early)
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing had happened at that point: its first event is at position=" in done.stderr
    answer = json.loads(shell.noetl(*early, "--json").stdout)
    assert answer["report"]["event_count"] == 0


def test_a_sound_log_has_no_faults(shell: Shell, execution: str) -> None:
    assert "faults         none\n" in shell.noetl("log", "verify").stdout


def test_verify_prints_a_certificate(shell: Shell, execution: str) -> None:
    certificate = json.loads(shell.noetl("replay", "verify", execution, "--json").stdout)
    assert certificate["proved"] is True
    assert certificate["snapshot_version"] == 11
    assert set(certificate["projection_checksums"]) == {
        "execution", "stages", "frames", "commands", "business_objects", "loops",
    }  # fmt: skip


def test_people_read_lines_and_programs_read_an_object(shell: Shell, execution: str) -> None:
    assert "bytes" in json.loads(shell.noetl("replay", "snapshot", execution, "--json").stdout)
    shown = shell.noetl("replay", "snapshot", execution).stdout
    assert shown.splitlines()[0].split() == ["execution", "id", execution]
    assert "equal, taken at version" in shell.noetl("replay", "verify", execution).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("replay", "state", "1"), 1, "execution_not_found"),
        (("replay", "state", "1", "--at", "yesterday"), 2, "use event=ID|position=N|time=ISO"),
        (("replay", "state", "1", "--at", "time=2026-11-15T21:00:00"), 2, "has no time zone"),
        (("log", "nonsense"), 2, "No such command"),
        (("replay", "state", "abc"), 1, "execution_not_found"),
        (("replay", "state", "9" * 30), 1, "execution_not_found"),
        (("replay", "state", "1", "--at", "position=" + "9" * 5000), 2, "is not a point"),
        (("log", "tail", "--after", "9" * 20), 2, "is not in the range"),
        (("log", "tail", "--limit", "0"), 2, "is not in the range"),
    ],
)
def test_mistakes_are_explained(
    shell: Shell, execution: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = shell.noetl(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_another_tenant_finds_nothing(shell: Shell, execution: str) -> None:
    stranger = Shell(shell.folder)
    stranger.environment = {**shell.environment, "NOETL_TENANT_ID": "acme"}
    assert stranger.noetl("replay", "state", execution).returncode == 1
    assert stranger.noetl("log", "tail").stdout == ""


def test_a_damaged_log_is_found_and_not_replayed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.demo()
    assert shell.noetl("log", "verify").returncode == 0
    with sqlite3.connect(tmp_path / ".noetl" / "demo" / "log.db") as connection:
        (execution,) = connection.execute("SELECT execution_id FROM event LIMIT 1").fetchone()
        connection.execute(
            "UPDATE event SET canonical = replace(canonical, 'A-1', 'A-9') WHERE position = 6"
        )

    verified = shell.noetl("log", "verify", "--json")
    replayed = shell.noetl("replay", "verify", str(execution))

    assert verified.returncode == 1
    assert json.loads(verified.stdout)["faults"][0]["kind"] == "checksum"
    assert "  checksum at position 6: " in shell.noetl("log", "verify").stdout
    assert replayed.returncode == 1
    assert "event_corrupt" in replayed.stderr
