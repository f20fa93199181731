"""Whatever is wrong with an order, the answer says what and what to do, and is no traceback."""

import socket
from pathlib import Path

import pytest

from tests.cli.shells import HEAD, HELLO, Shell

WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("run",), 2, "Missing argument 'REF'"),
    (("run", "missing.yaml"), 2, "missing.yaml cannot be read: No such file"),
    (("run", "helo.yaml"), 2, "did you mean hello.yaml?"),
    (("run", "hello.yaml", "--set", "who", "=", "x"), 2, "write KEY=VALUE without blanks"),
    (("run", "folder"), 2, "folder is a folder, and no playbook is registered under it"),
    (("run", "bad.yaml"), 2, "bad.yaml:2:2: error: this is not YAML"),
    (("run", "binary.yaml"), 2, "save the file as UTF-8"),
    (("run", "text.yaml"), 2, "a playbook must be a mapping"),
    (("run", "kinds.yaml"), 2, "there is no tool kind 'pyton'; did you mean 'python'?"),
    (("run", "nowhere/at-all"), 2, "register it: noetl playbooks register FILE"),
    (("run", "hello.yaml", "--set", "who"), 2, "is not key=value; e.g. --set city=Lima"),
    (("run", "hello.yaml", "--set", "who=[1"), 2, "close the bracket"),
    (("run", "hello.yaml", "--payload", "[1]"), 2, "--payload is not a map"),
    (("run", "hello.yaml", "--timeout", "soon"), 2, "'soon' is not a number"),
    (("run", "hello.yaml", "--server", "nonsense"), 2, "write it like http://127.0.0.1:8082"),
    (("playbooks", "check", "folder"), 2, "'folder' is a directory"),
    (("playbooks", "show", "guides/none"), 1, "noetl playbooks register FILE"),
    (("executions", "show", "7"), 1, "noetl executions list shows those"),
    (("executions", "list", "--status", "nope"), 2, "'running', 'paused', 'completed'"),
    (("executions", "list", "--status", "paused"), 0, "no such executions; all of them"),
    (("executions", "events", "ID", "--type", "step.exi"), 0, "did you mean step.exit?"),
    (("executions", "retry", "ID"), 1, "name one: --from STEP"),
    (("executions", "trace", "ID", "nowhere"), 2, "steps so far: start"),
    (("explain", "7"), 1, "there is no execution 7 here"),
    (("credentials", "add", "x", "--type", "bearer", "--data", "{bad"), 2, "close the bracket"),
    (("credentials", "remove", "x", "--yes"), 1, "noetl credentials list"),
    (("results", "show", "nonsense"), 1, "names begin with noetl://"),
    (("results", "get", "noetl://a/b/results/1/s/0/0/1@1"), 1, "there is no execution 1 here"),
    (("log", "tail", "--limit", "few"), 2, "'few' is not a whole number"),
    (("log", "export", "7"), 1, "there is no execution 7 here"),
    (("replay", "state", "ID", "--at", "dawn"), 2, "use event=ID|position=N|time=ISO"),
    (("replay", "state", "ID", "--at", "event=1"), 1, "noetl executions events ID lists them"),
]


class Ran(Shell):
    """A folder in which one execution has ended."""

    execution = ""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    shell = Ran(tmp_path_factory.mktemp("wrong"))
    (shell.folder / "folder").mkdir()
    (shell.folder / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    shell.write("hello.yaml", HELLO)
    shell.write("bad.yaml", "a: [1, 2\nb: }")
    shell.write("text.yaml", "just text")
    kinds = "workflow: [{step: start, tool: {kind: pyton}}]\n"
    shell.write("kinds.yaml", f"{HEAD}metadata: {{name: kinds}}\n{kinds}")
    shell.execution = shell.json("run", "hello.yaml")["execution_id"]
    return shell


@pytest.mark.parametrize(
    ("arguments", "code", "says"), WRONG, ids=[" ".join(each[0]) for each in WRONG]
)
def test_a_wrong_order_is_answered_in_words(
    shell: Ran, arguments: tuple[str, ...], code: int, says: str
) -> None:
    named = [shell.execution if word == "ID" else word for word in arguments]
    done = shell.noetl(*named)
    told = done.stderr.replace(shell.execution, "ID")
    assert "Traceback" not in told
    assert says in told
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("NOETL_HOME", "/dev/null/x", "set it to a folder of your own"),
        ("NOETL_HOEM", "x", "did you mean NOETL_HOME?"),
        ("NOETL_LEASE_SECONDS", "soon", "at NOETL_LEASE_SECONDS"),
        ("NOETL_LOG_URL", "mysql://x", "use sqlite: or postgresql://user@host/name"),
        ("NOETL_SECRET_KEY", "short", "openssl rand -base64 32"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, setting: str, value: str, says: str) -> None:
    shell = Shell(tmp_path)
    shell.environment[setting] = value
    done = shell.noetl("run", shell.write("hello.yaml", HELLO))
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told_with_a_way_out(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = shell.noetl("dev", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "choose another port with --port, or stop who has this one" in done.stderr
