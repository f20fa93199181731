"""`noetl run` as scripts and people use it: exit codes, a clean stdout, advice on stderr."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.shells import HEAD, HELLO, LOOP, NEEDS_FILE, NOETL, SLOW, Shell, ended


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_file_runs_to_its_result(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("hello.yaml", HELLO), "--set", "who=Ada")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"greeting": "hello Ada!"}
    shown, ending = done.stderr.splitlines()
    assert shown.startswith("✓ start  ")
    assert ending.startswith("completed: execution ")


def test_json_is_one_object_with_everything(shell: Shell) -> None:
    answer = shell.json("run", shell.write("hello.yaml", HELLO))
    assert set(answer) == {
        "execution_id", "status", "result", "error", "events", "duration_seconds",
    }  # fmt: skip
    assert (answer["status"], answer["error"]) == ("COMPLETED", None)
    assert answer["result"] == {"greeting": "hello world!"}
    assert answer["events"] > 5


def test_quiet_shows_nothing_but_the_result(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("hello.yaml", HELLO), "--quiet")
    assert done.stderr == ""
    assert json.loads(done.stdout)


def test_nested_settings_input_and_payload_reach_the_playbook(shell: Shell) -> None:
    shell.write("hello.yaml", HELLO)
    shell.write("input.json", '{"who": "file", "sign": {"mark": "?"}}')
    answer = shell.json(
        "run", "hello.yaml", "--input", "input.json", "--payload", '{"who": "payload"}',
        "--set", "sign.mark=.",
    )  # fmt: skip
    assert answer["result"] == {"greeting": "hello payload."}


def test_a_registered_playbook_runs_by_path_and_version(shell: Shell) -> None:
    shell.noetl("playbooks", "register", shell.write("hello.yaml", HELLO))
    shell.noetl(
        "playbooks", "register", shell.write("hello.yaml", HELLO.replace("hello {", "hi {"))
    )
    assert shell.json("run", "guides/hello")["result"] == {"greeting": "hi world!"}
    assert shell.json("run", "guides/hello@1")["result"] == {"greeting": "hello world!"}


def test_a_playbook_can_come_from_standard_input(shell: Shell) -> None:
    assert json.loads(shell.noetl("run", "-", stdin=HELLO).stdout) == {"greeting": "hello world!"}


def test_a_sub_playbook_comes_with_it(shell: Shell) -> None:
    shell.write("hello.yaml", HELLO)
    shell.write(
        "parent.yaml",
        HELLO.split("metadata")[0]
        + "metadata: {name: parent, path: guides/parent}\n"
        + "workflow:\n"
        + "  - {step: start, tool: {kind: playbook, path: guides/hello, input: {who: child}}}\n",
    )
    assert shell.json("run", "parent.yaml")["error"]["kind"] == "not_found"
    answer = shell.json("run", "parent.yaml", "--with", "hello.yaml")
    assert answer["status"] == "COMPLETED"
    assert "hello child!" in json.dumps(answer["result"])


def test_a_loop_says_its_rows_on_one_line(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("loop.yaml", LOOP))
    assert done.stdout == "6\n"
    lines = done.stderr.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["start", "each", "finish"]
    assert "each  6 rows" in lines[1]


def test_a_failure_names_step_kind_message_and_the_next_command(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("needs.yaml", NEEDS_FILE), "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["result"]) == ("FAILED", None)
    assert answer["error"]["step"] == "looks"
    assert "✗ looks" in done.stderr
    assert f"failed: step looks: {answer['error']['kind']}: " in done.stderr
    assert f"noetl executions show {answer['execution_id']}" in done.stderr
    assert f"noetl executions retry {answer['execution_id']}" in done.stderr


def test_a_wrong_file_is_explained_by_line_and_leaves_no_trace(shell: Shell) -> None:
    shell.write("wrong.yaml", HELLO.replace("kind: python", "kind: pithon"))
    done = shell.noetl("run", "wrong.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "wrong.yaml:8:13: error: " in done.stderr
    assert not (shell.folder / ".noetl").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere.yaml",), "cannot be read"),
        (("guides/nowhere",), "entry_not_found"),
        (("guides/hello@newest",), "PATH@VERSION"),
        (("hello.yaml", "--set", "who"), "key=value"),
        (("hello.yaml", "--payload", "["), "not YAML"),
        (("hello.yaml", "--payload", "[]"), "is not a map"),
        (("hello.yaml", "--input", "nowhere.json"), "does not exist"),
        (("hello.yaml", "--with", "nowhere.yaml"), "does not exist"),
        (("hello.yaml", "--timeout", "-1"), "--timeout"),
        ((), "Missing argument"),
    ],
)
def test_wrong_usage_is_two(shell: Shell, arguments: tuple[str, ...], says: str) -> None:
    shell.write("hello.yaml", HELLO)
    done = shell.noetl("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_does_not_change_the_answer(shell: Shell) -> None:
    shell.write("loop.yaml", LOOP)
    command = f"set -o pipefail; {NOETL} run loop.yaml 2>&1 >&3 3>&- | true; echo $?"
    done = subprocess.run(
        ["bash", "-c", f"exec 3>/dev/null; {command}; {NOETL} run loop.yaml | true; echo $?"],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["0", "0"]
    assert "Traceback" not in done.stderr


def test_a_second_run_waits_for_the_first(shell: Shell) -> None:
    shell.write("slow.yaml", SLOW)
    shell.write("hello.yaml", HELLO)
    first = shell.begin("run", "slow.yaml", "--set", f"file={shell.folder}/begun", "--json")
    shell.until("begun")
    hurried = shell.noetl("run", "hello.yaml", "--timeout", "0.3")
    assert hurried.returncode == 3
    assert "home_in_use" in hurried.stderr
    second = shell.begin("run", "hello.yaml", "--json")
    assert second.stderr is not None
    assert second.stderr.readline().startswith("waiting: ")
    (shell.folder / "begun.go").touch()
    code, out, _ = ended(first)
    assert (code, json.loads(out)["result"]) == (0, "went")
    code, out, _ = ended(second)
    assert (code, json.loads(out)["result"]) == (0, {"greeting": "hello world!"})


def test_time_that_is_over_leaves_the_execution_to_the_next_start(shell: Shell) -> None:
    shell.write("slow.yaml", SLOW)
    done = shell.noetl(
        "run", "slow.yaml", "--set", f"file={shell.folder}/begun", "--json", "--timeout", "2"
    )
    assert done.returncode == 3
    answer = json.loads(done.stdout)
    execution = answer.pop("execution_id")
    nothing_yet = ("result", "error", "events", "duration_seconds")
    assert answer == {"status": "RUNNING", **dict.fromkeys(nothing_yet)}
    assert "noetl executions resume" in done.stderr
    (shell.folder / "begun.go").touch()
    assert shell.json("executions", "resume", execution)["result"] == "went"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("whoo=Ada", "did you mean who"),
        ("whoo.deep=1", "did you mean who"),
        ("colour=red", "it has who, sign"),
    ],
)
def test_a_setting_that_nobody_reads_is_doubted_and_still_taken(
    shell: Shell, setting: str, says: str
) -> None:
    done = shell.noetl("run", shell.write("hello.yaml", HELLO), "--set", setting, "--quiet")
    assert done.returncode == 0
    name = setting.partition("=")[0].partition(".")[0]
    assert f"warning: --set {name}: the playbook reads no such name; {says}" in done.stderr


def test_a_setting_that_a_template_reads_is_not_doubted(shell: Shell) -> None:
    text = HELLO.replace("{{ workload.who }}", "{{ workload.guest | default(workload.who) }}")
    done = shell.noetl("run", shell.write("hello.yaml", text), "--set", "guest=Ada")
    assert "hello Ada!" in done.stdout
    assert "warning" not in done.stderr


def test_a_name_that_nobody_gives_is_told_before_the_run(shell: Shell) -> None:
    asking = HELLO.replace("workload.who }}", "who }} {{ greeting }}").replace("who: world, ", "")
    file = shell.write("asking.yaml", asking)
    done = shell.noetl("run", file, "--set", "who=Ada", "--quiet")
    assert done.returncode == 0
    assert (
        "warning: nothing gives {{ greeting }}, so it is empty; give it with --set" in done.stderr
    )
    assert "{{ who }}" not in done.stderr
    assert (
        shell.noetl("playbooks", "check", file).stdout
        == "asking.yaml: ok, 1 step; a request brings greeting, who\n"
    )


def test_an_execution_that_never_ends_by_itself_is_bounded(shell: Shell) -> None:
    file = shell.write(
        "round.yaml",
        f"{HEAD}metadata: {{name: round, path: guides/round}}\n"
        "workflow:\n  - {step: round, tool: {kind: noop}, next: round}\n",
    )
    shell.environment["NOETL_VISITS_MAX"] = "4"
    done = shell.noetl("run", file, "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert (error["step"], error["code"]) == ("round", "endless")
    assert "round.yaml:5:45: warning: this arc leads from step 'round' back to" in done.stderr


PRINTS = f"""{HEAD}metadata: {{name: prints, path: guides/prints}}
workflow:
  - step: start
    tool:
      kind: python
      code: |
        print("before it breaks")
        result = 1 / 0
"""


def test_what_code_prints_and_where_it_fails_is_shown(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("prints.yaml", PRINTS))
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert "  start | before it breaks" in lines
    at = lines.index("failed: step start: transform: division by zero")
    assert '    File "<start>", line 2, in <module>' in lines[at:]
    assert "      result = 1 / 0" in lines[at:]
    assert "  ZeroDivisionError: division by zero" in lines[at:]


def test_with_json_the_object_has_the_traceback_and_nothing_printed_is_shown(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("prints.yaml", PRINTS), "--json")
    assert "before it breaks" not in done.stderr
    traceback = json.loads(done.stdout)["error"]["detail"]["py"]["traceback"]
    assert "line 2, in <module>" in traceback
